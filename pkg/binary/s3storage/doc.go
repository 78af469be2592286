// Package s3storage keeps contents in a bucket of S3 or of a server that speaks
// its protocol. It is a driver.Storage, and a driver.Signer.
//
// # Keys
//
//	<prefix>contents/<hash[:2]>/<hash>   a content
//	<prefix>tmp/<stage>/<n>              the n-th segment of a stage
//
// Nothing else is ever read, changed or removed, so a bucket may be shared with
// others.
//
// # How a content comes in
//
// Its hash, and with it its key, is known at the end only, and S3 can't rename.
// What fits into one part (5 MiB, the least that S3 takes for one) stays in
// memory until Commit and is then put under its key: one request and no copy.
// S3 compares it with the hash before it keeps it.
//
// What is larger goes out as it comes in, part by part, as multipart uploads,
// so that a stage never holds more than one part in memory. A multipart upload
// ends after 128 parts as a segment of the stage, and the next begins: a number
// of parts that is bounded by S3 then bounds no content below 5 TiB, with parts
// that stay small. Commit has S3 copy: a lone segment with CopyObject, several
// with a multipart upload whose parts are the segments. Either way the key
// changes from nothing to everything in one act of S3's.
//
// Every part carries a checksum that S3 compares, and a whole that S3 makes of
// parts is made under theirs and its size. Of a lone segment S3 says the
// SHA-256 that it copied, which is compared with the hash.
//
// # A content that is there already
//
// It is written once more, over itself. Both are the same bytes, so whoever
// reads sees the content all the time; it counts as modified now, which S3 has
// no other way to say; and what was damaged is whole again. Neither a question
// beforehand nor a conditional write would make it cheaper or safer: the bytes
// are in S3 already, and a refused condition would still leave the time to be
// renewed.
//
// # What S3 must promise
//
// A read after a write that was acknowledged sees it, and a listing too. S3
// has promised both since 2020.
//
// # Silence
//
// A server that takes no byte and gives none for Options.IdleTimeout is away.
// There is no limit to how long a transfer may take that goes on. What may pass
// is tried four times, then it is errs.Unavailable.
package s3storage
