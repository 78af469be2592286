// Package s3storage stores contents in a bucket of Amazon S3 or of a compatible
// server. It is a driver.Storage and a driver.Signer.
//
// # Keys
//
//	<prefix>contents/<hash[:2]>/<hash>   a content
//	<prefix>tmp/<stage>/<n>              the n-th segment of a stage
//	<prefix>variants/<hash[:2]>/<hash>.<name>
//
// The package reads, changes and removes no other keys, so a bucket can have other
// objects too.
//
// # Uploads
//
// The hash of a content, and so its key, is known at its end, and S3 can't rename
// objects. A content that fits into one part (5 MiB, the minimum of S3) stays in
// memory until Commit, which puts it under its key: one request and no copy. S3
// verifies the SHA-256 before it stores the object.
//
// A larger content is sent in parts of multipart uploads. A stage always has memory for
// one part. It sends up to four parts at once while its budget has memory for more: see
// transfer. A part stays in memory until S3 has acknowledged it, so it can be sent again.
//
// A multipart upload is completed after 896 parts as a segment of the stage, and the next
// one begins. S3 limits the number of parts, and the size of what it copies at once; with
// segments the limit of a content is 5 TiB although its parts are small.
//
// Commit lets S3 copy a single segment with CopyObject. A content of more than 128 parts
// is copied in pieces of so many parts, several at once, with a multipart upload. If the
// server returns no checksums of copied parts, CopyObject copies a single segment of any
// size. In all cases the object appears under its key atomically.
//
// S3 verifies a checksum of every part, and those and the size of every object that
// it assembles from parts. CopyObject returns the SHA-256 of a single segment, which
// is compared with the hash.
//
// # Contents that exist
//
// Commit overwrites an existing content with the same bytes. Readers notice nothing. The
// write repairs a damaged content and updates the modification time, for which S3 has no
// other means. Neither a HEAD request before it nor a conditional write would be cheaper
// or safer: the bytes have been sent by then, and after a failed condition the
// modification time would still have to be updated.
//
// # Consistency
//
// The package needs read-after-write consistency of reads and listings. S3 has had
// both since 2020.
//
// # Timeouts
//
// A connection on which no byte moves for Options.IdleTimeout is closed. There is no
// limit for the duration of a whole transfer. Transient errors are retried up to four
// times in all, then the error is errs.Unavailable.
package s3storage
