package app

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/pkg/app/plan"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

const watchInterval = time.Second

// missingConsumers holds why consumers of built-in listeners are missing, by name.
type missingConsumers struct {
	mu      sync.Mutex
	reasons map[string]error
}

// set records why a consumer is missing, or, with nil, that it exists.
func (m *missingConsumers) set(consumer string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reasons == nil {
		m.reasons = map[string]error{}
	}
	if err == nil {
		delete(m.reasons, consumer)
		return
	}
	m.reasons[consumer] = err
}

func (m *missingConsumers) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, consumer := range slices.Sorted(maps.Keys(m.reasons)) {
		return bus.Unavailable(m.reasons[consumer], "a built-in listener can't receive events")
	}
	return nil
}

// startWatch ends belfry when a backend fails that does not recover by itself: a folder, whose disk is
// full for instance, works again only after a restart, which the service manager then does.
func (a *App) startWatch(context.Context) error {
	a.every(watchInterval, "the watch of folders", func(ctx context.Context) bool {
		err := a.failedFolder(ctx)
		if err == nil || ctx.Err() != nil {
			return true
		}
		a.fail(err)
		return false
	})
	return nil
}

// failedFolder returns the error of a backend whose folder has failed.
func (a *App) failedFolder(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(a.now().backends)) {
		if a.now().config.Backends[name].Type != "file" {
			continue
		}
		if err := a.now().backends[name].Ping(ctx); err != nil {
			return errs.Wrap(err, errs.Unavailable, "backend %s has failed", name)
		}
	}
	return nil
}

// warn logs settings that are easily overlooked.
func (a *serving) warn() {
	for _, name := range slices.Sorted(maps.Keys(a.plan.Open)) {
		a.log.Warn("everyone has access to a store: it has no policy for these operations",
			"store", name, "operations", strings.Join(a.plan.Open[name], ", "))
	}
	for _, unknown := range plan.CheckNames(a.config).Unknown {
		a.log.Warn("the configuration names a property that the schema does not have: `belfry config check` refuses it",
			"key", unknown.Key, "line", unknown.Line, "problem", unknown.Message)
	}
	for _, limit := range plan.Unjudged(a.config) {
		a.log.Warn("a schema limits what it does not judge", "problem", limit)
	}
	for _, writable := range plan.WritableIdents(a.config) {
		a.log.Warn("anybody can write idents", "problem", writable)
	}
	for _, refused := range plan.RefusedUUIDs(a.config) {
		a.log.Warn("a schema refuses all new objects", "problem", refused)
	}
	if host, _, err := net.SplitHostPort(a.HTTPAddress()); err == nil && a.has(plan.RoleFront) && a.config.BaseURLAt("") == "" && len(a.config.Hosts) == 0 {
		if ip, err := netip.ParseAddr(host); err == nil && !ip.IsLoopback() {
			a.log.Warn("clients reach belfry as localhost and by its IP address only, and links in mails point to localhost: set baseURL, and other names in hosts", "listen", a.config.Listen)
		}
	}
	if open := a.openOverBus(); len(open) > 0 {
		a.log.Warn("every client of the bus has full access to these stores: policies do not apply there, and bus.listen needs no password",
			"stores", strings.Join(open, ", "), "listen", a.config.Bus.Listen)
	}
	if e := a.config.Authentication.Email; e != nil {
		if m := a.config.Mailers[e.Mailer]; m.File != nil {
			a.log.Warn("mails are written into a folder, not sent: the mailer is of type file", "mailer", e.Mailer, "folder", m.File.Folder)
		}
	}
}
