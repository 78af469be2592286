package config

import "belfry/config/decode"

// ReloadPolicy says what a reload does with a changed value. The tag reload of its key has it.
type ReloadPolicy = decode.Policy

// The policies of a reload.
const (
	Live    = decode.Live    // a reload applies the value
	Restart = decode.Restart // a reload is refused; the next start applies the value
	Refused = decode.Refused // a reload is refused, since other data would be served: Change.Command moves the data
)

// Changed returns the keys that are not the same in two files, sorted, without their values: of a section that one of
// them does not have the key of the section, of a list that of the list. A key whose value has the content of a file is
// one of them if that content is another.
func Changed(before, now *Config) []string { return decode.ChangedKeys(before.doc, now.doc) }

// Changes returns the differences between two configurations, with the effect of a reload on each. Defaults are filled
// in, so a key that follows another one by default differs as well.
func Changes(before, now *Config) []Change {
	all := decode.Changes(before.doc, now.doc, conditions)
	for i := range all {
		all[i].Command = commands[all[i].Command]
	}
	return all
}

// Refusals returns a problem for each difference that a reload does not apply: changes of listeners and connections,
// and changes that would show other data.
func Refusals(before, now *Config) (problems Problems) {
	for _, c := range Changes(before, now) {
		switch c.Policy {
		case Restart:
			problems = append(problems,
				now.Problem(c.Path, "can't change while belfry runs: restart it, or set the value of before"))
		case Refused:
			problems = append(problems, now.Problem(c.Path,
				"can't change while belfry runs, since other data would be shown: %s; or set the value of before",
				c.Command))
		}
	}
	problems.Sort()
	return problems
}

// commands move the data that another value of a key would leave behind. The tag reload names them.
var commands = map[string]string{
	"data": "stop belfry, move the data with `belfry migrate --from OLD --to NEW`, and start it with the new file",
	"accounts": "copy the accounts with `belfry export --secrets` and `belfry import --secrets`, and start belfry " +
		"with the new file",
}

// conditions of the tag reload make a change one that needs a restart.
var conditions = map[string]decode.Condition[Config]{
	"trusted":       func(_ string, before, now *Config) bool { return before.trustsAtStart() && now.trustsAtStart() },
	"embedded":      func(_ string, before, _ *Config) bool { return len(before.Bus.URL) == 0 },
	"authenticated": func(_ string, before, now *Config) bool { return changesMethod(&before.Bus, &now.Bus) },
}

// trustsAtStart reports whether something that is opened at the start trusts the authorities of the key ca.
func (c *Config) trustsAtStart() bool {
	for _, b := range c.Backends {
		if b.MongoDB != nil || b.DynamoDB != nil {
			return true
		}
	}
	for _, b := range c.Binaries {
		if b.S3 != nil {
			return true
		}
	}
	return c.Backup != nil && c.Backup.S3 != nil || c.Tracing.Endpoint != "" ||
		len(c.Bus.URL) > 0 && c.Bus.TLS.CA == "" || c.HTTP.ACME != nil && c.HTTP.ACME.CA == ""
}

// changesMethod reports whether a new token of the bus needs a restart. The embedded server reads its file only when it
// starts. The next connection to an external bus uses another token, but it can't add or drop one.
func changesMethod(before, now *Bus) bool {
	return len(before.URL) == 0 || (before.Token == "") != (now.Token == "")
}
