package s3storage

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
)

// left is what a stage, or a copy to a content, has left or still uses.
type left struct {
	latest  time.Time // sign of life
	objects []string
	uploads []*upload
}

func (l *left) seen(at *time.Time) {
	if t := aws.ToTime(at); t.After(l.latest) {
		l.latest = t
	}
}

// RemoveAbandoned implements driver.Storage. Whether a process is gone can't be known of a
// bucket: a stage of another one counts as left behind when it has put nothing
// there since before. So that should be longer ago than any upload pauses.
func (s *Storage) RemoveAbandoned(ctx context.Context, before time.Time) (int, error) {
	found := map[string]*left{}
	if err := s.findUploads(ctx, found); err != nil {
		return 0, err
	}
	if err := s.findSegments(ctx, found); err != nil {
		return 0, err
	}
	count := 0
	for name, l := range found {
		if s.inUse(name) || !l.latest.Before(before) {
			continue
		}
		if err := s.lookAtParts(ctx, l); err != nil {
			return count, err
		}
		if !l.latest.Before(before) {
			continue
		}
		for _, u := range l.uploads {
			if err := u.abort(ctx); err != nil {
				return count, err
			}
		}
		if err := s.removeAll(ctx, l.objects); err != nil {
			return count, err
		}
		count++
	}
	return count, nil
}

func (s *Storage) findUploads(ctx context.Context, found map[string]*left) error {
	for _, prefix := range []string{s.stages(), s.contents()} {
		pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return s.fail(ctx, err, "listing uploads")
			}
			for _, u := range page.Uploads {
				if l := s.leftAt(found, aws.ToString(u.Key)); l != nil {
					l.seen(u.Initiated)
					l.uploads = append(l.uploads, &upload{s: s, key: *u.Key, id: aws.ToString(u.UploadId)})
				}
			}
		}
	}
	return nil
}

func (s *Storage) findSegments(ctx context.Context, found map[string]*left) error {
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.stages())})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return s.fail(ctx, err, "listing stages")
		}
		for _, o := range page.Contents {
			if l := s.leftAt(found, aws.ToString(o.Key)); l != nil {
				l.seen(o.LastModified)
				l.objects = append(l.objects, *o.Key)
			}
		}
	}
	return nil
}

// leftAt is what a key belongs to: the stage or the content that its name has.
// It is nil when the key is none of ours.
func (s *Storage) leftAt(found map[string]*left, key string) *left {
	name, ok := s.hashOf(key)
	if !ok {
		rest, ours := strings.CutPrefix(key, s.stages())
		name, _, ok = strings.Cut(rest, "/")
		if !ours || !ok || uuid.Validate(name) != nil {
			return nil
		}
	}
	if found[name] == nil {
		found[name] = &left{}
	}
	return found[name]
}

// lookAtParts finds later signs of life: the parts of uploads.
func (s *Storage) lookAtParts(ctx context.Context, l *left) error {
	for _, u := range l.uploads {
		pages := s3.NewListPartsPaginator(s.client, &s3.ListPartsInput{Bucket: &s.bucket, Key: &u.key, UploadId: &u.id})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if codeOf(err) == "NoSuchUpload" {
				break // it has just ended
			}
			if err != nil {
				return s.fail(ctx, err, "listing parts")
			}
			for _, part := range page.Parts {
				l.seen(part.LastModified)
			}
		}
	}
	return nil
}
