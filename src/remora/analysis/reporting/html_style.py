"""The style sheet of an HTML report."""

from __future__ import annotations

STYLE = """
:root{--bg:#f6f7f8;--fg:#1c2329;--soft:#5c6873;--line:#dfe3e7;--card:#fff;--done:#1f8a5b;--partial:#c98a11;
--unchanged:#8a95a0;--failed:#c9362b;--unsealed:#6a5acd;--add:#e3f6ea;--del:#fdeaea;--hunk:#eef3fb;--link:#0b6e7f}
@media(prefers-color-scheme:dark){:root{--bg:#14181b;--fg:#e4e8eb;--soft:#9aa6b0;--line:#2c3439;--card:#1b2125;
--done:#3fbf87;--partial:#e0ab3f;--unchanged:#7c8791;--failed:#f07a6f;--unsealed:#a394ff;--add:#173527;--del:#3b2020;
--hunk:#1e2a38;--link:#5cc8d8}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:24px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}h3{font-size:14px;margin:18px 0 6px}
header p,footer,.note{color:var(--soft);margin:0 0 14px}footer{margin-top:36px;font-size:13px}
code,pre{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}a{color:var(--link);text-decoration:none}
a:hover{text-decoration:underline}
.bar{display:flex;height:10px;border-radius:5px;overflow:hidden;background:var(--line);margin:6px 0 18px}
.bar.small{height:6px;width:140px;margin:4px 8px 0 0;display:inline-flex}
.bar span{display:block}
.bar .done,.dot.done{background:var(--done)}.bar .partial,.dot.partial{background:var(--partial)}
.bar .unchanged,.dot.unchanged{background:var(--unchanged)}.bar .failed,.dot.failed{background:var(--failed)}
.bar .unsealed,.dot.unsealed{background:var(--unsealed)}
.dot{display:inline-block;width:10px;height:10px;border-radius:50%}
.cards{display:flex;flex-wrap:wrap;gap:10px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 16px;min-width:96px}
.card b{display:block;font-size:20px;line-height:1.3}.card span{color:var(--soft);font-size:13px}
.card.done b{color:var(--done)}.card.partial b{color:var(--partial)}.card.failed b{color:var(--failed)}
.card.unsealed b{color:var(--unsealed)}
.wide{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{padding:6px 10px;text-align:left;vertical-align:top;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--soft);font-weight:600;white-space:nowrap}
td code{overflow-wrap:anywhere}.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.bad{color:var(--failed);font-weight:600}
details{background:var(--card);border:1px solid var(--line);border-radius:10px;margin:12px 0;padding:0 16px}
summary{cursor:pointer;padding:10px 0;overflow-wrap:anywhere}summary span{color:var(--soft)}
details[open]{padding-bottom:16px}details h2{margin-top:14px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:4px 0 12px;font-size:14px}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.diff{margin:0;border:1px solid var(--line);border-radius:8px;overflow-x:auto;padding:8px 0;background:var(--bg)}
.diff span{display:block;padding:0 12px;white-space:pre;min-width:max-content}
.diff .add{background:var(--add)}.diff .del{background:var(--del)}.diff .hunk{background:var(--hunk);color:var(--soft)}
.diff .file{color:var(--soft);font-weight:600}
@media(max-width:640px){dl{grid-template-columns:1fr}dt{margin-top:6px}}
@media print{body{background:#fff}details{break-inside:avoid}}
"""
