package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"belfry/config/decode"
	"belfry/config/value"
	"belfry/internal/schedule"
)

// Backup says where backups are, and when one is made.
type Backup struct {
	BackupPlace
	Schedule schedule.Schedule `key:"schedule" is:"schedule"` // zero: only the command makes backups
	Keep     Keep              `key:"keep"`
}

// BackupPlace is a folder, or a bucket.
type BackupPlace struct {
	Folder string     `json:"folder,omitempty" key:"folder" is:"folder"`
	S3     *S3Storage `json:"s3,omitempty" key:"s3" without:"presign"`
}

// Keep is how many backups stay: the latest ones, and the latest of so many hours, days,
// weeks, months and years. Zeros keep all.
type Keep struct {
	Last    int `key:"last" is:"count"`
	Hourly  int `key:"hourly" is:"count"`
	Daily   int `key:"daily" is:"count"`
	Weekly  int `key:"weekly" is:"count"`
	Monthly int `key:"monthly" is:"count"`
	Yearly  int `key:"yearly" is:"count"`
}

// Validate refuses backups in two places, and in none.
func (*Backup) Validate(s *decode.Section) {
	switch {
	case s.Has("folder") && s.Has("s3"):
		s.Problem("s3", "can't be set beside folder: backups are in one of them")
	case !s.Has("folder") && !s.Has("s3"):
		s.Problem("folder", "is missing; expected the path of a folder for backups, or s3 with a bucket")
	}
}

// parseEndpoint accepts the URL of another server than those of AWS, without credentials: messages have it.
var parseEndpoint = value.URL("http", "https")

// checkBackup refuses to keep backups where files are: the retention removes what no backup has.
func (c *Config) checkBackup() {
	if c.Backup == nil {
		return
	}
	if name := c.BinariesIn(&c.Backup.BackupPlace); name != "" {
		c.doc.Problem("backup", "is in the place of the files of binaries.%s: give it a folder or a prefix of its own",
			name)
	}
}

// BinariesIn returns the name of the binary service whose files are in a place, "" if none has.
func (c *Config) BinariesIn(p *BackupPlace) string {
	for _, name := range names(c.Binaries) {
		b := c.Binaries[name]
		if p.S3 == nil && b.File != nil && b.File.Folder == p.Folder {
			return name
		}
		if p.S3 != nil && b.S3 != nil && b.S3.Bucket == p.S3.Bucket && b.S3.Prefix == p.S3.Prefix &&
			b.S3.Endpoint == p.S3.Endpoint {
			return name
		}
	}
	return ""
}

// ParseBackupPlace parses the place of backups in a flag: the path of a folder, or
// s3://bucket/prefix, with ?endpoint=URL&region=NAME where they are not those of AWS and
// of the environment.
func ParseBackupPlace(text string) (*BackupPlace, error) {
	if !strings.HasPrefix(text, "s3://") {
		folder, err := filepath.Abs(text)
		if err != nil || text == "" || strings.Contains(text, "://") {
			return nil, errors.New("expected the path of a folder, or s3://bucket/prefix")
		}
		return &BackupPlace{Folder: folder}, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, errors.New("expected s3://bucket/prefix, with credentials in the environment or the files of AWS")
	}
	s3 := &S3Storage{Bucket: u.Host}
	if err := s3.readQuery(u); err != nil {
		return nil, err
	}
	if s3.Prefix = strings.Trim(u.Path, "/"); s3.Prefix != "" {
		s3.Prefix += "/"
	}
	return &BackupPlace{S3: s3}, nil
}

// readQuery reads the parameters of an s3:// URL. One that is unknown is refused: backups would go elsewhere.
func (s *S3Storage) readQuery(u *url.URL) error {
	const expected = "expected the parameters endpoint and region, once each, such as " +
		"s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1"
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Fragment != "" {
		return errors.New("the URL has a fragment or no valid query; " + expected)
	}
	for _, name := range names(query) {
		values := query[name]
		switch {
		case len(values) > 1:
			return fmt.Errorf("the parameter %s is given %d times; %s", name, len(values), expected)
		case name == "endpoint":
			s.Endpoint = values[0]
		case name == "region":
			s.Region = values[0]
		default:
			return fmt.Errorf("the parameter %s is unknown; %s", name, expected)
		}
		if values[0] == "" {
			return fmt.Errorf("the parameter %s is empty; %s", name, expected)
		}
	}
	if s.Endpoint != "" {
		if _, err := parseEndpoint(s.Endpoint); err != nil {
			return fmt.Errorf("endpoint: %w", err)
		}
	}
	return nil
}

// String names the place for people.
func (p *BackupPlace) String() string {
	switch {
	case p.S3 == nil:
		return p.Folder
	case p.S3.Endpoint != "":
		return "s3://" + p.S3.Bucket + "/" + p.S3.Prefix + " at " + p.S3.Endpoint
	default:
		return "s3://" + p.S3.Bucket + "/" + p.S3.Prefix
	}
}
