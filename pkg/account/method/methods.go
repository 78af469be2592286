package method

import (
	"slices"

	"belfry/pkg/account/method/about"
	"belfry/pkg/account/record"
)

// Methods are the methods of a service, in the order in which they are shown.
type Methods []Method

// Get returns a method; nil for one that does not exist.
func (all Methods) Get(name string) Method {
	i := slices.IndexFunc(all, func(m Method) bool { return m.About().Name == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

// About returns the description of a method; only the name of an unknown one.
func (all Methods) About(name string) about.Method {
	if m := all.Get(name); m != nil {
		return m.About()
	}
	return about.Method{Name: name, Title: name}
}

// Factors returns the methods that can be second factors.
func (all Methods) Factors() (factors []Factor) {
	for _, m := range all {
		if f, ok := m.(Factor); ok {
			factors = append(factors, f)
		}
	}
	return factors
}

// Factor returns a method that can be a second factor; nil for others.
func (all Methods) Factor(name string) Factor {
	f, _ := all.Get(name).(Factor)
	return f
}

// Enabled returns the descriptions of the configured methods.
func (all Methods) Enabled() (enabled []about.Method) {
	for _, m := range all {
		if m.Enabled() {
			enabled = append(enabled, m.About())
		}
	}
	return enabled
}

// Usable returns the types of second factors with which a login can be completed at a time, after it has begun by some
// methods. The proof of the first factor, which may be a mailbox, can't be the second one.
func (all Methods) Usable(f record.Factors, methods []string, mailbox bool, now string) (usable []string) {
	for _, one := range f.List() {
		m := all.About(one.Type)
		// Otherwise it is a provider with that name.
		first := len(methods) > 0 && methods[0] == one.Type && m.AAL < 2 && m.Login
		if !first && (!m.Mailbox || !mailbox) && one.From <= now {
			usable = append(usable, one.Type)
		}
	}
	if !f.Any() || len(f.Recovery) == 0 {
		return usable
	}
	for _, m := range all {
		if spare := m.About(); spare.Spare {
			usable = append(usable, spare.Name)
		}
	}
	return usable
}

// Logins returns the descriptions of the configured methods that begin a login that has no route of its own.
func (all Methods) Logins() []about.Method {
	return slices.DeleteFunc(all.Enabled(), func(m about.Method) bool { return !m.Login })
}

// Scripted reports whether a script is needed for a method that is configured.
func (all Methods) Scripted() bool {
	return slices.ContainsFunc(all, func(m Method) bool { return m.Enabled() && m.About().Script })
}
