package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	miniokeys "github.com/minio/minio-go/v7/pkg/credentials"

	"belfry/test/backing"
)

const (
	s3Rounds  = 5
	s3Goal    = 2.0 // times that of MinIO's own client
	s3Threads = 4   // of MinIO's own client, as mc has them
)

const s3Configuration = configuration + `
binaries:
  binary: {map: {Items: [files]}, maxSize: %[1]dMiB, grace: 1s%[2]s}
`

// s3 measures uploads of a file to MinIO: through belfry, by MinIO's own client, and
// through belfry to a folder instead.
func (b *bench) s3(ctx context.Context, rounds, mebibytes int) error {
	f := newFiles(mebibytes << 20)
	return backing.WithHost(ctx, func(h *backing.Host) (err error) {
		server := backing.MinIO(h)
		for name, value := range map[string]string{
			"AWS_ACCESS_KEY_ID": server.AccessKey, "AWS_SECRET_ACCESS_KEY": server.SecretKey,
			"AWS_CA_BUNDLE": server.CAFile,
		} {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
		peer, err := minioPut(server)
		if err != nil {
			return err
		}
		ways := []*way{{name: "minio-go", put: func() error { return peer(ctx, f.next()) }}}
		bucket := fmt.Sprintf(", type: S3Storage, bucket: %s, endpoint: '%s'", server.Bucket, server.Endpoint)
		for _, belfry := range []struct{ name, storage string }{{"belfry", bucket}, {"folder", ""}} {
			s, err := b.serveWith(ctx, fmt.Sprintf(s3Configuration, mebibytes, belfry.storage))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.stop()) }()
			if _, err := closedLoop(s.base, 1, 1, create("/items", "large")); err != nil {
				return err
			}
			ways = append(ways, &way{name: belfry.name, server: s, put: func() error {
				_, err := closedLoop(s.base, 1, 1, f.put(s, len(f.content), f.large(s)))
				return err
			}})
		}
		return b.profiled(ctx, ways[1].server, "s3", profileSeconds,
			func() error { return compareWays(ways, min(rounds, s3Rounds), mebibytes) })
	})
}

// next returns the content as one that no server has.
func (f *files) next() []byte {
	binary.BigEndian.PutUint64(f.content, f.count.Add(1))
	return f.content
}

// minioPut returns what puts a content as `mc cp` does: four parts at once, with trailing checksums.
func minioPut(server *backing.S3Server) (func(context.Context, []byte) error, error) {
	transport, err := minio.DefaultTransport(true)
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig.RootCAs = server.RootCAs
	client, err := minio.New(strings.TrimPrefix(server.Endpoint, "https://"), &minio.Options{
		Creds: miniokeys.NewStaticV4(server.AccessKey, server.SecretKey, ""), Secure: true, Region: server.Region,
		Transport: transport, TrailingHeaders: true,
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, content []byte) error {
		_, err := client.PutObject(ctx, server.Bucket, "peer", bytes.NewReader(content), int64(len(content)),
			minio.PutObjectOptions{NumThreads: s3Threads})
		return err
	}, nil
}

// way is one of the ways of an upload that are compared.
type way struct {
	name   string
	server *server // of belfry
	put    func() error
	took   []float64 // seconds of each round
	ratios []float64 // to the first way
}

// compareWays takes the ways in turn.
func compareWays(ways []*way, rounds, mebibytes int) error {
	for range rounds {
		for _, w := range ways {
			began := time.Now()
			if err := w.put(); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			w.took = append(w.took, time.Since(began).Seconds())
			w.ratios = append(w.ratios, w.took[len(w.took)-1]/ways[0].took[len(w.took)-1])
		}
	}
	fmt.Printf("upload of %d MiB to MinIO over TLS, medians of %d rounds:\n", mebibytes, rounds)
	for _, w := range ways {
		fmt.Printf("  %-8s %6.2f s, %4.0f MiB/s, %.2f times minio-go with %d threads\n", w.name, median(w.took),
			float64(mebibytes)/median(w.took), median(w.ratios), s3Threads)
	}
	ratio := median(ways[1].ratios)
	fmt.Printf("  goal: at most %.0f times: %s\n", s3Goal, verdict(ratio <= s3Goal))
	return nil
}
