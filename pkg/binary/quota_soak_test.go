package binary_test

import (
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
)

// Whatever processes, clients, clocks and backends do, what was stored within any grace
// period is at most the quota; and once nothing was uploaded for so long, all of it is free.
func TestSoakNoGracePeriodHasMoreThanTheQuota(t *testing.T) {
	soak := kit.Soak(t, 4)
	for soak.More() {
		w := newQuotaWorld(t, soak.Rand())
		for range 300 {
			w.step()
		}
		w.end()
	}
}

// quotaWorld is some processes, and what was stored through them.
type quotaWorld struct {
	*quotas
	random   *rand.Rand
	shared   driver.Backend
	machines []*quotaMachine
	stored   []storedAt
}

type storedAt struct {
	at    time.Time
	bytes int64
}

// quotaMachine is a process with its connection to the backend.
type quotaMachine struct {
	*binary.Service
	connection *unavailable
	uploads    []*heldUpload
}

// heldUpload is an upload in flight.
type heldUpload struct {
	client *io.PipeWriter
	left   int
	size   int
	done   chan error
}

const soakQuota = 1_000_000

func newQuotaWorld(t *testing.T, random *rand.Rand) *quotaWorld {
	t.Helper()
	w := &quotaWorld{quotas: newQuotas(t, binary.Quota{User: soakQuota}), random: random}
	w.shared = w.backend
	for range 3 {
		w.machines = append(w.machines, w.machine())
	}
	return w
}

func (w *quotaWorld) machine() *quotaMachine {
	m := &quotaMachine{connection: &unavailable{Backend: w.shared}}
	w.backend = m.connection
	m.Service = w.process()
	return m
}

// step lets one thing happen.
func (w *quotaWorld) step() {
	i := w.random.IntN(len(w.machines))
	m := w.machines[i]
	switch n := w.random.IntN(100); {
	case n < 35:
		w.begin(m)
	case n < 60 && len(m.uploads) > 0:
		u := m.uploads[w.random.IntN(len(m.uploads))]
		u.feed(w.random.IntN(u.left + 1))
	case n < 80 && len(m.uploads) > 0:
		w.finish(m, w.random.IntN(len(m.uploads)), w.random.IntN(4) == 0)
	case n < 88:
		w.pass(time.Duration(w.random.Int64N(int64(quotaGrace / 2))))
	case n < 94:
		// The connection is lost: writes fail, and some of them are made.
		failure := error(errs.New(errs.Unavailable, "the backend is unavailable"))
		m.connection.also.Store(w.random.IntN(2) == 0)
		m.connection.fail.Store(&failure)
	case n < 98:
		m.connection.fail.Store(nil)
	case n < 99:
		// It is killed: what it had in flight never ends, and nothing is given back.
		failure := error(errs.New(errs.Unavailable, "the process is dead"))
		m.connection.also.Store(false)
		m.connection.fail.Store(&failure)
		for len(m.uploads) > 0 {
			w.finish(m, 0, true)
		}
		w.machines[i] = w.machine()
	}
}

func (w *quotaWorld) begin(m *quotaMachine) {
	size := 1 + w.random.IntN(soakQuota/10)
	body, client := io.Pipe()
	u := &heldUpload{client: client, left: size, size: size, done: make(chan error, 1)}
	up := binary.Upload{Place: photo(w.save("Books", `{}`), binary.Append), Body: body, Size: int64(size)}
	if w.random.IntN(2) == 0 {
		up.Size = -1
	}
	go func() {
		_, err := m.Put(w.from("ann", ""), up)
		_ = body.CloseWithError(io.ErrClosedPipe) // who sends more does not wait
		u.done <- err
	}()
	u.feed(1)
	m.uploads = append(m.uploads, u)
}

func (u *heldUpload) feed(bytes int) {
	_, _ = io.WriteString(u.client, content(bytes)) // fails once the upload is refused
	_, _ = u.client.Write(nil)                      // is read once the bytes before have been counted
	u.left -= bytes
}

// finish ends an upload, and records what was stored.
func (w *quotaWorld) finish(m *quotaMachine, i int, abort bool) {
	u := m.uploads[i]
	m.uploads = append(m.uploads[:i], m.uploads[i+1:]...)
	if abort {
		_ = u.client.CloseWithError(io.ErrUnexpectedEOF)
	} else {
		u.feed(u.left)
		_ = u.client.Close()
	}
	err := <-u.done
	switch errs.KindOf(err) {
	case errs.Limited, errs.Unavailable, errs.Canceled:
		return
	}
	if err != nil {
		w.Fatal(err)
	}
	now := w.now()
	w.stored = append(w.stored, storedAt{now, int64(u.size)})
	var sum int64
	for _, s := range w.stored {
		if now.Sub(s.at) <= quotaGrace {
			sum += s.bytes
		}
	}
	if sum > soakQuota {
		w.Fatalf("%d bytes were stored within a grace period, of a quota of %d", sum, soakQuota)
	}
}

// end ends all uploads. A grace period later the whole quota is free.
func (w *quotaWorld) end() {
	for _, m := range w.machines {
		m.connection.fail.Store(nil)
		for len(m.uploads) > 0 {
			w.finish(m, 0, w.random.IntN(2) == 0)
		}
	}
	w.pass(quotaCounts)
	w.sends(w.machines[0].Service, w.from("ann", ""), soakQuota, false)
}
