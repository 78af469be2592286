package app

import (
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"belfry/config"
	"belfry/pkg/app/plan"
)

// warn logs settings that are easily overlooked.
func warn(g *generation, roles roles, log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(g.plan.Open)) {
		log.Warn("everyone has access to a store: it has no policy for these operations",
			"store", name, "operations", strings.Join(g.plan.Open[name], ", "))
	}
	for _, unknown := range plan.CheckNames(g.config).Unknown {
		log.Warn("the configuration names a property that the schema does not have: `belfry config check` refuses it",
			"key", unknown.Key, "line", unknown.Line, "problem", unknown.Message)
	}
	for _, limit := range plan.Unjudged(g.config) {
		log.Warn("a schema limits what it does not judge", "problem", limit)
	}
	for _, writable := range plan.WritableIdents(g.config) {
		log.Warn("anybody can write idents", "problem", writable)
	}
	for _, refused := range plan.RefusedUUIDs(g.config) {
		log.Warn("a schema refuses all new objects", "problem", refused)
	}
	if host, _, err := net.SplitHostPort(g.address); err == nil && roles.has(plan.RoleFront) && g.config.BaseURLAt("") == "" && len(g.config.Hosts) == 0 {
		if ip, err := netip.ParseAddr(host); err == nil && !ip.IsLoopback() {
			log.Warn("clients reach belfry as localhost and by its IP address only, and links in mails point to localhost: set baseURL, and other names in hosts", "listen", g.config.Listen)
		}
	}
	if open := openOverBus(g); len(open) > 0 {
		log.Warn("every client of the bus has full access to these stores: policies do not apply there, and bus.listen needs no password",
			"stores", strings.Join(open, ", "), "listen", g.config.Bus.Listen)
	}
	if e := g.config.Authentication.Email; e != nil {
		if m := g.config.Mailers[e.Mailer]; m.File != nil {
			log.Warn("mails are written into a folder, not sent: the mailer is of type file", "mailer", e.Mailer, "folder", m.File.Folder)
		}
	}
}

// openOverBus returns the stores whose policies a client can evade over the bus, since the embedded bus
// does not authenticate its clients.
func openOverBus(g *generation) []string {
	if b := g.config.Bus; len(b.URL) > 0 || b.Listen == "" || b.Config != "" {
		return nil
	}
	var all []string
	for _, name := range g.plan.OnBus() {
		s := g.config.Stores[name]
		if s.Policy != (config.Policy{}) || s.Expose == nil || s.Expose.Restrict != (config.Restrict{}) {
			all = append(all, name)
		}
	}
	return all
}

// warnOfTrust says what a changed file of authorities is not used for before the next start.
func warnOfTrust(g *generation, log *slog.Logger, changed []string) {
	if slices.ContainsFunc(changed, func(key string) bool { return key == "ca" || strings.HasPrefix(key, "ca (") }) {
		log.Info("mailers and providers of logins trust the authorities of ca as they are now; backends, storages, the bus and traces do so from their next start on", "file", g.config.CA)
	}
}
