package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"belfry/internal/schedule"
)

// Backup says where backups are, and when one is made.
type Backup struct {
	BackupPlace
	Schedule schedule.Schedule // zero: only the command makes backups
	Keep     Keep
}

// BackupPlace is a folder, or a bucket.
type BackupPlace struct {
	Folder string     `json:"folder,omitempty"`
	S3     *S3Storage `json:"s3,omitempty"`
}

// Keep is how many backups stay: the latest ones, and the latest of so many hours, days,
// weeks, months and years. Zeros keep all.
type Keep struct{ Last, Hourly, Daily, Weekly, Monthly, Yearly int }

// minBackupInterval is the shortest interval of backups.
const minBackupInterval = time.Minute

func (c *Config) readBackup(s *section) {
	b := &Backup{}
	c.Backup = b
	readPath(s, "folder", &b.Folder, WrittenFolder)
	if bucket := s.section("s3"); s.has("s3") || c.doc.recorder != nil {
		b.S3 = readS3Place(bucket)
		bucket.rejectUnknown()
	}
	switch {
	case s.has("folder") && s.has("s3"):
		s.problem("s3", "can't be set beside folder: backups are in one of them")
	case !s.has("folder") && !s.has("s3"):
		s.problem("folder", "is missing; expected the path of a folder for backups, or s3 with a bucket")
	}
	decode(s, "schedule", &b.Schedule, parseSchedule)
	b.Keep = readKeep(s.section("keep"))
	s.rejectUnknown()
}

// parseEndpoint accepts the URL of another server than those of AWS, without credentials: messages have it.
var parseEndpoint = urlWithScheme("http", "https")

// checkBackup refuses to keep backups where files are: the retention removes what no backup has.
func (c *Config) checkBackup() {
	if c.Backup == nil {
		return
	}
	if name := c.BinariesIn(&c.Backup.BackupPlace); name != "" {
		c.doc.problem("backup", "is in the place of the files of binaries.%s: give it a folder or a prefix of its own", name)
	}
}

// BinariesIn returns the name of the binary service whose files are in a place, "" if none has.
func (c *Config) BinariesIn(p *BackupPlace) string {
	for _, name := range names(c.Binaries) {
		b := c.Binaries[name]
		if p.S3 == nil && b.File != nil && b.File.Folder == p.Folder {
			return name
		}
		if p.S3 != nil && b.S3 != nil && b.S3.Bucket == p.S3.Bucket && b.S3.Prefix == p.S3.Prefix && b.S3.Endpoint == p.S3.Endpoint {
			return name
		}
	}
	return ""
}

// readS3Place reads where in S3 something is.
func readS3Place(s *section) *S3Storage {
	var b S3Storage
	s.require("bucket", "the name of a bucket")
	decode(s, "bucket", &b.Bucket, parseNonEmpty)
	decode(s, "region", &b.Region, parseNonEmpty)
	decode(s, "endpoint", &b.Endpoint, parseEndpoint)
	decode(s, "prefix", &b.Prefix, parseText)
	return &b
}

func parseSchedule(text string) (schedule.Schedule, error) {
	if strings.HasPrefix(text, "@") || strings.Contains(strings.TrimSpace(text), " ") {
		return schedule.Cron(text)
	}
	every, err := durationIn(minBackupInterval, 365*day, "from 1m to 365d, or a cron expression")(text)
	if err != nil {
		return schedule.Schedule{}, fmt.Errorf("%w, or a cron expression such as 0 3 * * *", err)
	}
	return schedule.Every(every), nil
}

func readKeep(s *section) Keep {
	var k Keep
	decode(s, "last", &k.Last, parseCount)
	decode(s, "hourly", &k.Hourly, parseCount)
	decode(s, "daily", &k.Daily, parseCount)
	decode(s, "weekly", &k.Weekly, parseCount)
	decode(s, "monthly", &k.Monthly, parseCount)
	decode(s, "yearly", &k.Yearly, parseCount)
	s.rejectUnknown()
	return k
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 10_000 {
		return 0, errors.New("expected a number from 0 to 10000")
	}
	return n, nil
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
	const expected = "expected the parameters endpoint and region, once each, such as s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1"
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
