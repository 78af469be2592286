package command

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/listener"
)

// ListenerUser asks for what the user of a listener may do.
type ListenerUser struct {
	Name    string   `arg:"" help:"Name of the listener, and of its user."`
	Ordered bool     `help:"The listener is ordered."`
	Request []string `help:"It also sends requests for a store on this subject, store.Users.update for instance; may be repeated." placeholder:"SUBJECT"`
}

var storeSubject = regexp.MustCompile(`^store\.([A-Za-z0-9_-]+|\*)\.([a-z]+|\*)$`)

// permissions are the subjects of the user.
func (c ListenerUser) permissions() (publish, subscribe []string, err error) {
	for _, subject := range c.Request {
		if !storeSubject.MatchString(subject) {
			return nil, nil, errs.New(errs.Invalid,
				"--request: %q is no subject of a store; expected store.<Store>.<operation>", subject)
		}
	}
	publish, subscribe, err = listener.Permissions(c.Name, c.Ordered)
	return slices.Concat(publish, c.Request), subscribe, err
}

// variable is the name by which a configuration refers to the permissions.
func (c ListenerUser) variable() string {
	return strings.ToUpper(strings.ReplaceAll(c.Name, "-", "_"))
}

// userConfig is an operation that returns a part of the configuration of a NATS server.
func userConfig(name, help string,
	write func(c ListenerUser, publish, subscribe []string) string) *Operation[ListenerUser, string, none] {
	return &Operation[ListenerUser, string, none]{
		Name: name, Help: help, Bare: true, Prints: PrintText,
		Run: func(_ context.Context, _ *Place, c ListenerUser, _ func(none)) (*string, error) {
			publish, subscribe, err := c.permissions()
			if err != nil {
				return nil, err
			}
			text := write(c, publish, subscribe)
			return &text, nil
		},
		Text: func(w io.Writer, _ ListenerUser, text *string) error {
			_, err := io.WriteString(w, *text)
			return err
		},
	}
}

// BusRole returns the permissions of a user of the bus.
var BusRole = userConfig("bus role",
	"Print the permissions of a listener's user, for the configuration of a NATS server.",
	func(c ListenerUser, publish, subscribe []string) string {
		return fmt.Sprintf("%s: {\n  publish: [\n    \"%s\"\n  ]\n  subscribe: [\"%s\"]\n  allow_responses: true\n}\n",
			c.variable(), strings.Join(publish, "\",\n    \""), strings.Join(subscribe, `", "`))
	})

// BusAccount returns an account with the user of a listener. It imports what the user may
// publish, and the API's information on an account: a server does not serve the API
// itself to an account that imports that. Else it would reply to requests which are
// imported as well, that the account has no streams.
var BusAccount = userConfig("bus account",
	"Print the account of a listener's user, for the configuration of a NATS server.",
	func(c ListenerUser, publish, subscribe []string) string {
		name := c.variable() + "_ACCOUNT"
		var imports []string
		for _, subject := range append([]string{"$JS.API.INFO"}, publish...) {
			imports = append(imports, fmt.Sprintf("    {service: {account: BELFRY, subject: %q}}\n", subject))
		}
		intercepted := subscribe[slices.IndexFunc(subscribe, func(s string) bool {
			return strings.HasPrefix(s,
				"intercept.")
		})]
		return fmt.Sprintf(`# An interceptor also needs, in the imports of account BELFRY:
#   {service: {account: %[1]s, subject: %[2]q}}
%[1]s: {
  users: [{user: %[3]s, password: $BELFRY_%[4]s_PASSWORD, permissions: $%[4]s}]
  exports: [{service: %[2]q, accounts: [BELFRY]}]
  imports: [
%[5]s  ]
}
`, name, intercepted, c.Name, c.variable(), strings.Join(imports, ""))
	})
