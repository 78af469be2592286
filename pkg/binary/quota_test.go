package binary_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
)

func TestUploadsAreLimitedByUserAndByAddress(t *testing.T) {
	t.Parallel()
	q := newQuotas(t, binary.Quota{User: 100_000, Address: 250_000})
	ann, bob, nobody := q.from("ann", "192.0.2.1"), q.from("bob", "192.0.2.1"), q.from("", "2001:db8::1")
	q.sends(q.Service, ann, 60_000, false)
	q.sends(q.Service, ann, 40_000, false)
	q.sends(q.Service, ann, 50_000, true)
	q.sends(q.Service, q.from("ann", "192.0.2.2"), 1, true)
	q.sends(q.Service, bob, 100_000, false)
	// Whoever has many accounts has one address: what users upload counts for it as well.
	q.sends(q.Service, q.from("", "192.0.2.1"), 40_000, false)
	q.sends(q.Service, q.from("eve", "192.0.2.1"), 10_010, true)
	q.sends(q.Service, q.from("eve", "192.0.2.1"), 10_000, false)
	q.sends(q.Service, nobody, 250_000, false)
	q.sends(q.Service, q.from("", "2001:db8::2"), 1, true)
	q.sends(q.Service, q.from("", "2001:db8:0:1::1"), 250_000, false)
	// belfry itself and programs are not limited.
	for range 3 {
		q.sends(q.Service, q.Context(), 90_000, false)
	}

	_, err := q.Put(q.from("ann", "192.0.2.3"), binary.Upload{Place: photo(q.book, 0), Body: unreadBody{t}, Size: 1})
	q.kind(err, errs.Limited)
	for _, says := range []string{"your user", "binaries.files.quota.user", "100000 bytes within 1h0m0s"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
	}
	families, err := q.registry.Gather()
	q.must(err)
	refused := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		refused[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	if want := map[string]float64{"address": 4, "user": 5}; !maps.Equal(refused, want) {
		t.Errorf("the metric has %v, want %v", refused, want)
	}
}

// Contents of a byte would fill the disk with a fraction of the quota, or use up its files.
func TestAnUploadCountsAtLeastABlock(t *testing.T) {
	t.Parallel()
	q := newQuotas(t, binary.Quota{User: 3 * 4096})
	ann := q.from("ann", "")
	q.sends(q.Service, ann, 1, false)
	for _, size := range []int{0, 1} {
		up := upload(photo(q.book, binary.Append), content(size))
		up.Size = -1
		_, err := q.Put(ann, up)
		q.must(err)
	}
	q.sends(q.Service, ann, 1, true)
	q.sends(q.Service, ann, 0, true)
}

// A content that is replaced is there for the grace period, so bytes count as long.
func TestBytesCountForTheGracePeriod(t *testing.T) {
	t.Parallel()
	q := newQuotas(t, binary.Quota{User: 100_000})
	ann := q.from("ann", "")
	q.sends(q.Service, ann, 80_000, false)
	q.pass(30 * time.Minute)
	q.sends(q.Service, ann, 20_000, false)
	_, err := q.Put(ann, upload(photo(q.book, 0), content(50_000)))
	q.kind(err, errs.Limited)
	var limited *errs.Error
	errors.As(err, &limited)
	q.pass(29*time.Minute + 50*time.Second)
	q.sends(q.Service, ann, 1, true)
	q.pass(limited.RetryAfter - (29*time.Minute + 50*time.Second) - time.Second)
	q.sends(q.Service, ann, 50_000, true)
	q.pass(time.Second + time.Millisecond)
	q.sends(q.Service, ann, 80_000, false)
	q.sends(q.Service, ann, 1, true)
	q.pass(2 * quotaGrace)
	q.sends(q.Service, ann, 100_000, false)

	n, err := q.DeleteExpired(t.Context(), 10)
	q.must(err)
	if n != 0 {
		t.Errorf("%d records that count are deleted", n)
	}
	q.sends(q.process(), ann, 1, true)
	q.pass(2 * quotaGrace)
	if n, err = q.DeleteExpired(t.Context(), 10); err != nil || n != 1 {
		t.Errorf("%d records that do not count are deleted, %v", n, err)
	}
	q.sends(q.Service, ann, 100_000, false)
}

// failing is a body that fails after its bytes.
type failing struct{ io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New("the client has disconnected")
	}
	return n, err
}

func TestAnUploadThatFailsGivesItsBytesBack(t *testing.T) {
	t.Parallel()
	q := newQuotas(t, binary.Quota{User: 100_000})
	ann := q.from("ann", "")
	fail := func(change func(*binary.Upload)) {
		t.Helper()
		up := upload(photo(q.book, binary.Append), content(90_000))
		change(&up)
		if _, err := q.Put(ann, up); err == nil || errs.KindOf(err) == errs.Limited {
			t.Errorf("the upload fails with %v", err)
		}
	}
	for range 3 {
		fail(func(up *binary.Upload) { up.Body = failing{up.Body} })
		fail(func(up *binary.Upload) { up.Body, up.Size = failing{up.Body}, -1 })
		fail(func(up *binary.Upload) { up.Digest = []byte("another") })
		fail(func(up *binary.Upload) { up.Size = 80_000 })
		fail(func(up *binary.Upload) { up.Size = 95_000 })
		q.storage.write = errs.New(errs.Unavailable, "the disk is full")
		fail(func(*binary.Upload) {})
		q.storage.write = nil
	}
	q.sends(q.process(), ann, 95_000, false)
}

// Without this whoever has an upload refused at its end fills the storage: the
// content stays for the grace period.
func TestACommittedContentCountsAlsoWithoutARecord(t *testing.T) {
	t.Parallel()
	q := newQuotas(t, binary.Quota{User: 100_000})
	ann := q.from("ann", "")
	up := upload(photo(q.book, binary.Append), content(90_000))
	up.Reauthorize = func(context.Context) (context.Context, error) {
		return nil, errs.New(errs.Unauthenticated, "logged out")
	}
	_, err := q.Put(ann, up)
	q.kind(err, errs.Unauthenticated)
	if len(q.stored()) != 1 {
		t.Fatal("the content is not there")
	}
	q.sends(q.Service, ann, 10_010, true)
	q.sends(q.Service, ann, 10_000, false)
}

// Without this uploads that are held open longer than the grace period, and end at
// once, exceed the quota.
func TestAnUploadInFlightCountsHoweverLongItTakes(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int64{"announced": 90_000, "not announced": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQuotas(t, binary.Quota{User: 100_000})
			ann := q.from("ann", "")
			client, done := q.holds(q.Service, ann, size)
			send := func(bytes int) {
				t.Helper()
				if _, err := io.WriteString(client, content(bytes)); err != nil {
					t.Fatal(err)
				}
			}
			send(89_990)
			for range 9 {
				q.pass(20 * time.Minute)
				send(1) // returns once the byte has been read, and the next read begins after it is counted
			}
			q.sends(q.Service, ann, 15_000, true)
			q.sends(q.process(), ann, 15_000, true)
			send(1)
			q.must(client.Close())
			q.must(<-done)
			q.pass(quotaGrace - time.Minute)
			q.sends(q.Service, ann, 15_000, true)
			q.sends(q.process(), ann, 15_000, true)
			q.pass(quotaCounts - quotaGrace + time.Minute)
			q.sends(q.Service, ann, 90_000, false)
		})
	}
}

// Nothing renews the reservation of an upload that stalls, so that others can take it.
func TestAnUploadThatStallsForLongerThanTheGracePeriodIsNotFree(t *testing.T) {
	t.Parallel()
	q := newQuotas(t, binary.Quota{User: 100_000})
	ann := q.from("ann", "")
	client, done := q.begins(q.Service, ann, 90_000)
	q.pass(2 * quotaGrace)
	q.sends(q.process(), ann, 50_000, false)
	_, _ = io.WriteString(client, content(89_999)) // fails once it is refused
	_ = client.Close()
	q.kind(<-done, errs.Limited)
	if n := len(q.stored()); n != 1 {
		t.Errorf("%d contents are stored", n)
	}
	q.sends(q.Service, ann, 49_000, false)
}

// A process that is killed gives nothing back: what it had reserved counts until its
// slot ends.
func TestWhatAKilledProcessHasReservedCountsUntilItsSlotEnds(t *testing.T) {
	t.Parallel()
	q := newQuotas(t, binary.Quota{User: 100_000})
	ann := q.from("ann", "")
	client, done := q.begins(q.Service, ann, 90_000)
	other := q.process()
	q.sends(other, ann, 10_010, true)
	q.pass(quotaCounts)
	q.sends(other, ann, 100_000, false)
	q.must(client.CloseWithError(io.ErrClosedPipe))
	q.kind(<-done, errs.Canceled)
}

// Uploads in parallel, through processes that know nothing of each other.
func TestConcurrentUploadsOfSeveralProcessesStayWithinTheQuota(t *testing.T) {
	t.Parallel()
	const quota, size = 1_280_000, 10_000
	q := newQuotas(t, binary.Quota{User: quota})
	ann := q.from("ann", "")
	var accepted atomic.Int64
	var wg sync.WaitGroup
	for _, s := range []*binary.Service{q.Service, q.process(), q.process()} {
		for i := range 8 {
			book := q.save("Books", `{}`)
			wg.Go(func() {
				for n := 0; n < 100; n++ {
					up := upload(photo(book, 0), content(size))
					if i%2 == 0 {
						up.Size = -1
					}
					if n%5 == 4 {
						up.Body = failing{up.Body}
					}
					_, err := s.Put(ann, up)
					switch errs.KindOf(err) {
					case errs.Limited:
						return
					case errs.Canceled:
					default:
						if err != nil {
							t.Error(err)
							return
						}
						accepted.Add(size)
					}
				}
			})
		}
	}
	wg.Wait()
	if n := accepted.Load(); n > quota {
		t.Errorf("%d bytes of a quota of %d are stored", n, quota)
	}
	// What a process has reserved in advance, or for an upload that failed at that moment, is lost to others.
	if n := accepted.Load(); n < quota/2 {
		t.Errorf("only %d bytes of a quota of %d are stored", n, quota)
	}
	q.pass(2 * quotaGrace)
	q.sends(q.Service, ann, quota, false)
}
