package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/listener"
)

// listenerFlags say what the user of a listener may do.
type listenerFlags struct {
	Name    string   `arg:"" help:"Name of the listener, and of its user."`
	Ordered bool     `help:"The listener is ordered."`
	Request []string `help:"It also sends requests for a store on this subject, store.Users.update for instance; may be repeated." placeholder:"SUBJECT"`
}

var storeSubject = regexp.MustCompile(`^store\.([A-Za-z0-9_-]+|\*)\.([a-z]+|\*)$`)

// permissions are the subjects of the user.
func (c listenerFlags) permissions() (publish, subscribe []string, err error) {
	for _, subject := range c.Request {
		if !storeSubject.MatchString(subject) {
			return nil, nil, errs.New(errs.Invalid, "--request: %q is no subject of a store; expected store.<Store>.<operation>", subject)
		}
	}
	publish, subscribe, err = listener.Permissions(c.Name, c.Ordered)
	return slices.Concat(publish, c.Request), subscribe, err
}

// variable is the name by which a configuration refers to the permissions.
func (c listenerFlags) variable() string {
	return strings.ToUpper(strings.ReplaceAll(c.Name, "-", "_"))
}

type busRoleCmd struct{ listenerFlags }

// Run prints a block of permissions for a user of the bus.
func (c *busRoleCmd) Run(s streams) error {
	publish, subscribe, err := c.permissions()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s: {\n  publish: [\n    \"%s\"\n  ]\n  subscribe: [\"%s\"]\n  allow_responses: true\n}\n",
		c.variable(), strings.Join(publish, "\",\n    \""), strings.Join(subscribe, `", "`))
	return err
}

type busAccountCmd struct{ listenerFlags }

// Run prints an account with the user of a listener. It imports what the user may
// publish, and the API's information on an account: a server does not serve the API
// itself to an account that imports that. Else it would reply to requests which are
// imported as well, that the account has no streams.
func (c *busAccountCmd) Run(s streams) error {
	publish, subscribe, err := c.permissions()
	if err != nil {
		return err
	}
	name := c.variable() + "_ACCOUNT"
	var imports []string
	for _, subject := range append([]string{"$JS.API.INFO"}, publish...) {
		imports = append(imports, fmt.Sprintf("    {service: {account: BELFRY, subject: %q}}\n", subject))
	}
	intercepted := subscribe[slices.IndexFunc(subscribe, func(s string) bool { return strings.HasPrefix(s, "intercept.") })]
	_, err = fmt.Fprintf(s.out, `# An interceptor also needs, in the imports of account BELFRY:
#   {service: {account: %[1]s, subject: %[2]q}}
%[1]s: {
  users: [{user: %[3]s, password: $BELFRY_%[4]s_PASSWORD, permissions: $%[4]s}]
  exports: [{service: %[2]q, accounts: [BELFRY]}]
  imports: [
%[5]s  ]
}
`, name, intercepted, c.Name, c.variable(), strings.Join(imports, ""))
	return err
}
