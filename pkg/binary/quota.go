package binary

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
	"belfry/internal/ratelimit"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/query"
)

// Quota is how many bytes one caller may upload within the grace period, which is how
// long a replaced content takes space. 0 means no limit.
type Quota struct {
	User    int64 // a logged-in user, from all addresses
	Address int64 // a network address, with and without a login; of IPv6 a /64 is one
}

// QuotasOptions are the options with which the store Quotas is opened.
func QuotasOptions(name string) store.Options {
	return store.Options{Name: name, NoEvents: true,
		Indexes: []query.Index{{Name: fieldExpires, Fields: []string{fieldExpires}}}}
}

// Sorts of callers, which are the last elements of the keys of the configuration.
const (
	byUser    = "user"
	byAddress = "address"
)

// quotas counts the uploads of a service by caller.
//
// Each caller has a record in the store Quotas, with the bytes of each slot of time.
// Bytes are added there, by compare-and-set, before they are written to the storage, so
// that all processes together never exceed a quota. An account is what this process
// knows of a caller, see account.
type quotas struct {
	store   *store.Store
	service string
	quota   Quota
	grace   time.Duration
	now     func() time.Time
	refused *prometheus.CounterVec

	mu       sync.Mutex
	accounts map[string]*account // by the uuids of their records
}

// leastCounted is how many bytes an upload counts at least: a block of a disk. Contents of
// one byte would fill the disk with a fraction of the quota.
const leastCounted = 4 << 10

// maxAccounts is how many accounts without an upload in flight are kept.
const maxAccounts = 10_000

// newQuotas returns nil when there is no limit.
func newQuotas(o Options, grace time.Duration, now func() time.Time) *quotas {
	if o.Quotas == nil || o.Quota == (Quota{}) {
		return nil
	}
	q := &quotas{
		store: o.Quotas, service: o.Name, quota: o.Quota, grace: grace, now: now, accounts: map[string]*account{},
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belfry_binary_quota_refused_total",
			Help: "Uploads that a quota refused (429), by binary service and by the quota: user or address.",

			ConstLabels: prometheus.Labels{"service": o.Name},
		}, []string{"quota"}),
	}
	if o.Registry != nil {
		q.refused = prom.Register(o.Registry, q.refused)
	}
	return q
}

// reservation is the bytes of an upload in flight. nil is that of a caller without a
// limit. It is used by one goroutine, and always ended.
type reservation struct {
	quotas   *quotas
	accounts []*account // of the address, and of the logged-in user
	bytes    int64
	kept     bool
}

// begin returns the reservation of an upload, without any bytes yet. Calls that are not
// made for a client are not limited: they are belfry's own, and programs'.
func (q *quotas) begin(ctx context.Context) *reservation {
	call := store.CallOf(ctx)
	if q == nil || !call.Client || call.Trusted {
		return nil
	}
	r := &reservation{quotas: q}
	if q.quota.Address > 0 {
		r.accounts = append(r.accounts, q.enter(byAddress, ratelimit.Key(call.Ctx.Address), q.quota.Address))
	}
	if uuid, ok := call.User.Text("uuid"); ok && q.quota.User > 0 {
		r.accounts = append(r.accounts, q.enter(byUser, uuid, q.quota.User))
	}
	return r
}

// enter returns the account of a caller, which stays until it is left as often.
func (q *quotas) enter(by, caller string, limit int64) *account {
	uuid := quotaUUID(q.service, by, caller)
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.accounts[uuid]
	if a == nil {
		if len(q.accounts) >= maxAccounts {
			q.forget()
		}
		a = newAccount(q, uuid, by, limit)
		q.accounts[uuid] = a
	}
	a.uploads++
	return a
}

// forget drops the accounts without an upload. Bytes that they had reserved in advance
// count until their slot ends.
func (q *quotas) forget() {
	for uuid, a := range q.accounts {
		if a.uploads == 0 {
			delete(q.accounts, uuid)
		}
	}
}

func (q *quotas) leave(a *account) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a.uploads--
}

// take reserves further bytes, perhaps none, while the body arrives. Limited when the
// caller has used up the quota; Unavailable.
func (r *reservation) take(ctx context.Context, bytes int64) error {
	if r == nil {
		return nil
	}
	for i, a := range r.accounts {
		if err := a.take(ctx, bytes); err != nil {
			for _, other := range r.accounts[:i] {
				other.settle(ctx, bytes, false)
			}
			return err
		}
	}
	r.bytes += bytes
	return nil
}

// keep has the bytes count, for a whole grace period from now on, although the upload may
// fail: a committed content takes space as long, also without a record. Limited, Unavailable.
func (r *reservation) keep(ctx context.Context) error {
	if r == nil {
		return nil
	}
	if err := r.take(ctx, max(0, leastCounted-r.bytes)); err != nil {
		return err
	}
	for _, a := range r.accounts {
		if err := a.renew(ctx); err != nil {
			return err
		}
	}
	r.kept = true
	return nil
}

// end ends the upload. Bytes that are not kept are given back.
func (r *reservation) end(ctx context.Context) {
	if r == nil {
		return
	}
	for _, a := range r.accounts {
		a.settle(ctx, r.bytes, r.kept)
		r.quotas.leave(a)
	}
}

// errQuota is the error of an upload that would exceed a quota.
func (q *quotas) errQuota(by string, limit int64, wait time.Duration) error {
	q.refused.WithLabelValues(by).Inc()
	who := "your user"
	if by == byAddress {
		who = "your network address"
	}
	return &errs.Error{Kind: errs.Limited, RetryAfter: wait, Message: fmt.Sprintf(
		"%s exceeds binaries.%s.quota.%s: uploads of %d bytes within %s are allowed; wait for as many seconds as "+
			"Retry-After says",
		who, q.service, by, limit, q.grace)}
}

// DeleteExpired deletes records of quotas that no longer count, those of all services
// that share the store Quotas. It deletes at most limit and returns how many.
func (s *Service) DeleteExpired(ctx context.Context, limit int) (deleted int, err error) {
	if s.quotas == nil {
		return 0, nil
	}
	in, ctx := s.quotas.store, internal(ctx)
	o := store.ListOptions{Filter: fieldExpires + ` < "` + object.FormatTime(s.now()) + `"`,
		Limit: min(limit, store.MaxPage)}
	for deleted < limit {
		page, err := in.List(ctx, o)
		if err != nil {
			return deleted, err
		}
		for _, found := range page.Objects {
			// The revision guards against an upload that begins meanwhile.
			err := in.Delete(ctx, found.UUID, found.Revision)
			switch {
			case err == nil:
				deleted++
			case errs.KindOf(superseded(err)) != errs.Mismatch:
				return deleted, err
			}
		}
		if page.Next == "" {
			break
		}
		o.Cursor = page.Next
	}
	return deleted, nil
}
