package app

import (
	"slices"
	"strings"
)

// warnOfTrust says what a changed file of authorities is not used for before the next start.
func (g *serving) warnOfTrust(changed []string) {
	if slices.ContainsFunc(changed, func(key string) bool { return key == "ca" || strings.HasPrefix(key, "ca (") }) {
		g.log.Info("mailers and providers of logins trust the authorities of ca as they are now; backends, storages, the bus and traces do so from their next start on", "file", g.config.CA)
	}
}
