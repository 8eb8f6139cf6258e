"""What the bytes of streams, blobs and `heads.log` prove."""
