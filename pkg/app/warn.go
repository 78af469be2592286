package app

import (
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
)

// doubts are settings that have no effect, or another one than they seem to.
type doubts struct {
	unknown                     config.Problems
	unjudged, writable, refused []string
}

// doubtsOf compares a configuration with its schemas. That takes a while, so a start does it meanwhile.
func doubtsOf(c *config.Config) doubts {
	return doubts{plan.CheckNames(c).Unknown, plan.Unjudged(c), plan.WritableIdents(c), plan.RefusedUUIDs(c)}
}

// warn logs settings that are easily overlooked.
func warn(g *serving.Generation, found doubts, roles serving.Roles, log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(g.Plan.Open)) {
		log.Warn("everyone has access to a store: it has no policy for these operations",
			"store", name, "operations", strings.Join(g.Plan.Open[name], ", "))
	}
	for _, unknown := range found.unknown {
		log.Warn("the configuration names a property that the schema lacks: `belfry config check` refuses it",
			"key", unknown.Key, "line", unknown.Line, "problem", unknown.Message)
	}
	for _, limit := range found.unjudged {
		log.Warn("a schema limits values that it does not validate", "problem", limit)
	}
	for _, writable := range found.writable {
		log.Warn("every client can write idents", "problem", writable)
	}
	for _, refused := range found.refused {
		log.Warn("a schema refuses all new objects", "problem", refused)
	}
	if host, _, err := net.SplitHostPort(g.Address); err == nil && roles.Has(plan.RoleFront) &&
		g.Config.BaseURLAt("") == "" && len(g.Config.Hosts) == 0 {
		if ip, err := netip.ParseAddr(host); err == nil && !ip.IsLoopback() {
			log.Warn("clients reach belfry as localhost and by its IP address only, and links in mails point to "+
				"localhost: set baseURL, and other names in hosts", "listen", g.Config.Listen)
		}
	}
	if open := openOverBus(g); len(open) > 0 {
		log.Warn("every client of the bus has full access to these stores: policies do not apply there, and "+
			"bus.listen needs no password",
			"stores", strings.Join(open, ", "), "listen", g.Config.Bus.Listen)
	}
	if e := g.Config.Authentication.Email; e != nil {
		if m := g.Config.Mailers[e.Mailer]; m.File != nil {
			log.Warn("mails are written into a folder, not sent: the mailer is of type file", "mailer", e.Mailer,
				"folder", m.File.Folder)
		}
	}
}

// openOverBus returns the stores whose policies a client can evade over the bus, since the embedded bus
// does not authenticate its clients.
func openOverBus(g *serving.Generation) []string {
	if b := g.Config.Bus; len(b.URL) > 0 || b.Listen == "" || b.Config != "" {
		return nil
	}
	var all []string
	for _, name := range g.Plan.OnBus() {
		s := g.Config.Stores[name]
		if s.Policy != (config.Policy{}) || s.Expose == nil || s.Expose.Restrict != (config.Restrict{}) {
			all = append(all, name)
		}
	}
	return all
}

// warnOfTrust logs which parts use a changed file of authorities only after the next start.
func warnOfTrust(g *serving.Generation, log *slog.Logger, changed []string) {
	if slices.ContainsFunc(changed, func(key string) bool { return key == "ca" || strings.HasPrefix(key, "ca (") }) {
		log.Info("mailers and login providers trust the new authorities of ca; backends, storages, the bus and "+
			"traces use them only after the next start", "file", g.Config.CA)
	}
}

// reportChanges logs which operations this release denies with the same configuration, once for a data folder of an
// earlier release.
func reportChanges(g *serving.Generation, log *slog.Logger) {
	folder := g.Config.Data
	if hold.WasReported(folder, hold.DeniedByDefault) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(g.Config.Stores)) {
		s := g.Config.Stores[name]
		if denied := plan.LeftOut(g.Config, s); len(denied) > 0 {
			log.Warn("a policy denies operations that it does not name; an earlier release allowed them to everyone: "+
				"name a rule for each of these operations, or set default: allow",
				"store", name, "key", "stores."+name+".policy", "denied", strings.Join(denied, ", "))
		}
		if s.OwnersByDefault {
			log.Warn("in a store with an owner and without a policy, only owners have access, as by policy: owner; "+
				"an earlier release allowed everyone everything: set policy",
				"store", name, "key", "stores."+name+".policy")
		}
	}
	if err := hold.SetReported(folder); err != nil {
		log.Warn("the operations that this release denies will be reported again at the next start", "error", err)
	}
}
