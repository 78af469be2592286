package s3storage

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
)

// remains are the objects and uploads of a stage, or of a copy to a content.
type remains struct {
	latest  time.Time // modification
	objects []string
	uploads []*upload
}

func (l *remains) seen(at *time.Time) {
	if t := aws.ToTime(at); t.After(l.latest) {
		l.latest = t
	}
}

// RemoveAbandoned implements driver.Storage. A bucket does not show whether a process
// has ended: a stage of another process counts as abandoned when it has not changed
// since before. That must be longer ago than any upload pauses.
func (s *Storage) RemoveAbandoned(ctx context.Context, before time.Time) (int, error) {
	found := map[string]*remains{}
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
		if err := s.checkParts(ctx, l); err != nil {
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

// findUploads lists all uploads of the bucket: MinIO lists none by a prefix.
func (s *Storage) findUploads(ctx context.Context, found map[string]*remains) error {
	pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{Bucket: &s.bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return s.fail(ctx, err, "listing uploads")
		}
		for _, u := range page.Uploads {
			if l := s.remainsAt(found, aws.ToString(u.Key)); l != nil {
				l.seen(u.Initiated)
				l.uploads = append(l.uploads, &upload{s: s, key: *u.Key, id: aws.ToString(u.UploadId)})
			}
		}
	}
	return nil
}

func (s *Storage) findSegments(ctx context.Context, found map[string]*remains) error {
	pages := s3.NewListObjectsV2Paginator(s.client,
		&s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.stages())})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return s.fail(ctx, err, "listing stages")
		}
		for _, o := range page.Contents {
			if l := s.remainsAt(found, aws.ToString(o.Key)); l != nil {
				l.seen(o.LastModified)
				l.objects = append(l.objects, *o.Key)
			}
		}
	}
	return nil
}

// remainsAt returns the remains that a key belongs to, and nil for keys of others.
func (s *Storage) remainsAt(found map[string]*remains, key string) *remains {
	name, ok := s.hashOf(key)
	if !ok {
		rest, ours := strings.CutPrefix(key, s.stages())
		name, _, ok = strings.Cut(rest, "/")
		if !ours || !ok || uuid.Validate(name) != nil {
			return nil
		}
	}
	if found[name] == nil {
		found[name] = &remains{}
	}
	return found[name]
}

// checkParts updates latest with the parts of the uploads.
func (s *Storage) checkParts(ctx context.Context, l *remains) error {
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
