package config

import (
	"fmt"
	"time"
)

// Binary is a service that stores files attached to objects. Only the field that
// Type names is set.
type Binary struct {
	Type     string // FileStorage or S3Storage
	File     *FileStorage
	S3       *S3Storage
	URL      string // path prefix of its routes
	Restrict BinaryRestrict
	Map      map[string][]string // store to properties; nil is any property that the server does not set
	MaxSize  int64               // bytes of one file
	Grace    time.Duration       // how long a content without references is kept
	Quota    Quota
}

// Quota is how many bytes one caller may upload to a service within its Grace; 0: no limit.
type Quota struct {
	User    int64 // a user who is logged in
	Address int64 // a network address, with and without a login
}

// BinaryRestrict names the routes that do not exist.
type BinaryRestrict struct{ Create, Get, Delete bool }

// FileStorage keeps files in a folder.
type FileStorage struct{ Folder string }

// S3Storage keeps files in a bucket. Presign is the lifetime of the signed
// URLs that downloads are redirected to; 0 streams the content through belfry.
// Credentials come from the AWS SDK's default chain.
type S3Storage struct {
	Bucket, Region, Endpoint, Prefix string
	Presign                          time.Duration

	CA string // as Config.CA
}

func (c *Config) readBinaries(s *section) {
	c.Binaries = map[string]*Binary{}
	s.named("binaries", func(name string, s *section) { c.Binaries[name] = c.readBinary(name, s) })
}

func (c *Config) readBinary(name string, s *section) *Binary {
	b := &Binary{Type: "FileStorage", URL: "/binary", MaxSize: 10 << 20, Grace: time.Hour}
	if !decode(s, "type", &b.Type, oneOf("FileStorage", "S3Storage")) {
		return b
	}
	s.suffix = "of a binary service of type " + b.Type
	expose := s.section("expose")
	decode(expose, "url", &b.URL, parseRoute)
	restrict := expose.section("restrict")
	decode(restrict, "create", &b.Restrict.Create, parseFlag)
	decode(restrict, "get", &b.Restrict.Get, parseFlag)
	decode(restrict, "delete", &b.Restrict.Delete, parseFlag)
	restrict.rejectUnknown()
	expose.rejectUnknown()
	if places := s.section("map"); len(places.keys) > 0 {
		b.Map = map[string][]string{}
		for _, store := range places.keys {
			b.Map[store] = places.properties(store, parseOwnProperty)
		}
	}
	decode(s, "maxSize", &b.MaxSize, sizeIn(1<<50))
	decode(s, "grace", &b.Grace, durationIn(time.Second, 365*day, "from 1s to 365d"))
	b.Quota.read(s.section("quota"), b)
	if b.Type == "S3Storage" {
		b.S3 = readS3(s)
	} else {
		b.File = &FileStorage{}
		c.folder(s, &b.File.Folder, "binaries", name)
	}
	s.rejectUnknown()
	return b
}

// Quotas that are not configured: far above what people upload, and above what fits into a file.
const (
	quotaAnHour = 10 << 30
	quotaFiles  = 10
	quotaUsers  = 4 // of one address

	minQuota = 4 << 10
)

func (q *Quota) read(s *section, b *Binary) {
	hours := max(1, int64((b.Grace+time.Hour-1)/time.Hour))
	read := func(key string, into *int64) {
		if !decode(s, key, into, sizeOrNone) || *into == 0 {
			return
		}
		switch {
		case *into < b.MaxSize:
			s.problem(key, "expected at least maxSize, %s, or 0 for no limit: a file of that size could never be uploaded", showSize(b.MaxSize))
		case *into < minQuota:
			s.problem(key, "expected at least %s, which an upload counts at least, or 0 for no limit", showSize(minQuota))
		}
	}
	usual := max(hours*quotaAnHour, quotaFiles*b.MaxSize)
	q.User = usual
	read("user", &q.User)
	q.Address = quotaUsers * max(usual, q.User)
	read("address", &q.Address)
	s.rejectUnknown()
}

// sizeOrNone accepts a size, or 0.
func sizeOrNone(text string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	n, err := sizeIn(1 << 50)(text)
	if err != nil {
		err = fmt.Errorf("%w, or 0 for no limit", err)
	}
	return n, err
}

func readS3(s *section) *S3Storage {
	b := readS3Place(s)
	decode(s, "presign", &b.Presign, presignDuration)
	return b
}

// presignDuration accepts 0 and the range that S3 allows.
func presignDuration(text string) (time.Duration, error) {
	const described = "of 0s (none), or from 1s to 7d"
	if d, err := durationIn(0, 0, described)(text); err == nil {
		return d, nil
	}
	return durationIn(time.Second, 7*day, described)(text)
}
