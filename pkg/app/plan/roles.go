package plan

import (
	"maps"
	"slices"
	"strings"

	"belfry/config"
	"belfry/internal/count"
	"belfry/listeners/mail"
	"belfry/pkg/errs"
)

// Shared reports whether other processes may write the same stores.
func (p *Plan) Shared() bool {
	for _, s := range p.Config.Stores {
		if p.Config.Backends[s.Backend].File == nil {
			return true
		}
	}
	return false
}

// RoleSearch indexes the text of objects, and answers searches.
const RoleSearch = "search"

// RoleFront serves requests: HTTP, operations over the bus, and events for browsers. The others are the role
// search and the built-in listeners.
const RoleFront = "front"

// Roles returns the roles that a process can be limited to.
func Roles() []string {
	roles := []string{RoleFront, RoleSearch}
	for _, listener := range BuiltIn {
		if role := RoleOf(listener); !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles
}

// unshared returns a problem for each backend that only one process can use, and one for storages. The remedy is the
// same for everything in a backend.
func unshared(c *config.Config) (problems config.Problems) {
	in := map[string][]string{} // stores by backend, those of the configuration first
	for _, name := range append(c.DeclaredStores(), slices.Sorted(maps.Keys(c.Stores))...) {
		backend := c.Stores[name].Backend
		if c.Backends[backend].Type == "file" && !slices.Contains(in[backend], name) {
			in[backend] = append(in[backend], name)
		}
	}
	for _, backend := range slices.Sorted(maps.Keys(in)) {
		stores := in[backend]
		mine := max(1, countIn(stores, c.DeclaredStores())) // the file declares no others
		problems = append(problems,
			c.Problem("stores."+
				stores[0], "with --role several processes use the store: it%s can't be in backend %s, whose folder "+
				"only one process can use; give the backend the type mongodb or dynamodb, or start one process "+
				"without --role",
				others(mine-1, "store"), backend))
	}
	var folders []string
	for _, name := range slices.Sorted(maps.Keys(c.Binaries)) {
		if c.Binaries[name].S3 == nil {
			folders = append(folders, name)
		}
	}
	if len(folders) > 0 {
		problems = append(problems,
			c.Problem("binaries."+
				folders[0], "with --role several processes use the storage: it%s can't be a folder, which only one "+
				"process can use; give it the type S3, or start one process without --role",
				others(len(folders)-1, "service")))
	}
	return problems
}

// countIn returns how many of the names are in a list.
func countIn(names, list []string) (n int) {
	for _, name := range names {
		if slices.Contains(list, name) {
			n++
		}
	}
	return n
}

// others returns text about further ones with the same problem.
func others(n int, noun string) string {
	if n == 0 {
		return ""
	}
	return " and " + count.Of(n, "other "+noun)
}

// checkRoles returns an error if a process can't be limited to some roles. Other processes have the other roles, so all
// of them must share the bus and the stores.
func checkRoles(c *config.Config, roles []string) error {
	for _, role := range roles {
		if !slices.Contains(Roles(), role) {
			return errs.New(errs.Invalid, "--role: there is no role %q; expected one of %s", role,
				strings.Join(Roles(), ", "))
		}
	}
	if len(roles) == 0 {
		return nil
	}
	var problems config.Problems
	if len(c.Bus.URL) == 0 {
		problems = append(problems, c.Problem("bus",
			"with --role other processes have the other roles: set url, since the embedded bus is inside one process"))
	}
	problems = append(problems, unshared(c)...)
	if slices.Contains(roles, mail.Name) && c.Authentication.Email != nil && c.BaseURLAt("") == "" { // not configured
		problems = append(problems, c.Problem("baseURL",
			"is required with --role mail: links in mails point to it, and this process does not serve HTTP"))
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}
