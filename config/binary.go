package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"belfry/config/decode"
	"belfry/config/value"
	"belfry/internal/mediatype"
	"belfry/internal/thumbnail"
)

// Binary is a service that stores files attached to objects. Only the field that
// Type names is set.
type Binary struct {
	Type         string `key:"type" of:"a binary service" is:"one FileStorage S3Storage" default:"FileStorage" reload:"refused=data"`
	BinaryExpose `key:"expose"`
	// by store; nil is any property that the server does not set
	Map map[string]FileProperties `key:"map" names:"any"`
	// media types that uploads may have, by their content; nil is any, as the client says
	Types []string `key:"types" list:"words" is:"mediaRange"`
	// sizes of the thumbnails of pictures
	Thumbs []thumbnail.Size `key:"thumbs" list:"words" is:"thumbnail"`
	// bytes of one file
	MaxSize int64 `key:"maxSize" is:"size 1024TiB" default:"10MiB"`
	// how long a content without references is kept
	Grace time.Duration `key:"grace" is:"duration 1s 365d" default:"1h"`
	Quota Quota         `key:"quota"`
	File  *FileStorage  `variant:"FileStorage" reload:"refused=data"`
	S3    *S3Storage    `variant:"S3Storage" reload:"refused=data"`
}

// FileProperties are the properties of a store that files can be attached to.
type FileProperties struct {
	Names []string                `word:"true" list:"names" is:"ownProperty"`
	Each  map[string]FileProperty `key:"*" names:"property"` // instead of a list
}

// FileProperty has the limits of the files of a property. They narrow those of the service.
type FileProperty struct {
	MaxSize int64    `key:"maxSize" is:"size 1024TiB"` // bytes of one file; 0: that of the service
	Types   []string `key:"types" list:"words" is:"mediaRange"`
}

// Places returns the properties that files can be attached to, by store; nil for any that the server does not set.
func (b *Binary) Places() map[string][]string {
	if b.Map == nil {
		return nil
	}
	all := make(map[string][]string, len(b.Map))
	for store, properties := range b.Map {
		all[store] = properties.Names
	}
	return all
}

// Validate sets the names of a map.
func (p *FileProperties) Validate(s *decode.Section) {
	if len(s.Keys()) == 0 {
		p.Each = nil
		s.Problem("", "expected the properties that files can be attached to, such as [pictures]")
	}
	p.Names = slices.Sorted(maps.Keys(p.Each))
}

// BinaryExpose are the routes of a service.
type BinaryExpose struct {
	URL      string         `key:"url" is:"route" default:"/binary"` // path prefix
	Restrict BinaryRestrict `key:"restrict"`
}

// Quota is how many bytes one caller may upload to a service within its Grace; 0: no limit.
type Quota struct {
	User    int64 `key:"user" is:"sizeOrNone 1 1024TiB"`    // a user who is logged in
	Address int64 `key:"address" is:"sizeOrNone 1 1024TiB"` // a network address, with and without a login
}

// BinaryRestrict names the routes that do not exist.
type BinaryRestrict struct {
	Create bool `key:"create"`
	Get    bool `key:"get"`
	Delete bool `key:"delete"`
}

// FileStorage keeps files in a folder.
type FileStorage struct {
	Folder string `key:"folder" is:"folder" default:"{data}/binaries/{name}"`
}

// S3Storage keeps files in a bucket. Presign is the lifetime of the signed
// URLs that downloads are redirected to; 0 streams the content through belfry.
// Credentials come from the AWS SDK's default chain.
type S3Storage struct {
	Bucket   string        `key:"bucket" is:"nonempty" required:"the name of a bucket"`
	Region   string        `key:"region" is:"nonempty"`
	Endpoint string        `key:"endpoint" is:"url http https"`
	Prefix   string        `key:"prefix"`
	Presign  time.Duration `key:"presign" is:"presign" reload:"live"`

	CA string // as Config.CA
}

// Quotas that are not configured: far above what people upload, and above what fits into a file.
const (
	quotaAnHour = 10 << 30
	quotaFiles  = 10
	quotaUsers  = 4 // of one address

	minQuota = 4 << 10
)

// maxThumbs is how many sizes the thumbnails of one picture may have.
const maxThumbs = 16

// thumbs are the sizes without the key.
func thumbs() []thumbnail.Size {
	return []thumbnail.Size{{Width: 90, Height: 90}, {Width: 300, Height: 300}, {Width: 1200}}
}

// checkProperty refuses limits of a property that those of the service contradict.
func (b *Binary) checkProperty(s *decode.Section, path string, p FileProperty) {
	if p.MaxSize > b.MaxSize {
		s.Problem(path+".maxSize", "expected at most maxSize of the service, %s: raise that, or lower this",
			value.ShowSize(b.MaxSize))
	}
	for _, one := range p.Types {
		overlaps := func(of string) bool { return mediatype.Overlap(one, of) }
		if len(b.Types) > 0 && !slices.ContainsFunc(b.Types, overlaps) {
			s.Problem(path+".types", "no file of the type %s is of the types of the service, %s: add the type there, "+
				"or remove it here", one, strings.Join(b.Types, " "))
		}
	}
}

// Validate sets the quotas and thumbnails that are not configured, and refuses quotas that no upload fits in.
func (b *Binary) Validate(s *decode.Section) {
	if !s.Has("thumbs") {
		b.Thumbs = thumbs()
	}
	if len(b.Thumbs) > maxThumbs {
		s.Problem("thumbs", "expected at most %d sizes", maxThumbs)
	}
	if len(b.Map) == 0 {
		b.Map = nil
	}
	for _, store := range slices.Sorted(maps.Keys(b.Map)) {
		for _, name := range b.Map[store].Names {
			b.checkProperty(s, decode.Join(decode.Join("map", store), name), b.Map[store].Each[name])
		}
	}
	hours := max(1, int64((b.Grace+time.Hour-1)/time.Hour))
	usual := max(hours*quotaAnHour, quotaFiles*b.MaxSize)
	b.checkQuota(s, "quota.user", &b.Quota.User, usual)
	b.checkQuota(s, "quota.address", &b.Quota.Address, quotaUsers*max(usual, b.Quota.User))
}

func (b *Binary) checkQuota(s *decode.Section, path string, quota *int64, usual int64) {
	switch {
	case !s.Valid(path):
		*quota = usual
	case *quota == 0:
	case *quota < b.MaxSize:
		s.Problem(path, "expected at least maxSize, %s, or 0 for no limit: a file of that size could never be uploaded",
			value.ShowSize(b.MaxSize))
	case *quota < minQuota:
		s.Problem(path, "expected at least %s, which an upload counts at least, or 0 for no limit",
			value.ShowSize(minQuota))
	}
}
