package apimodel

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Identifier converts a name of the configuration into the name of a type:
// "sold-books" becomes "SoldBooks". Characters that no language allows are dropped.
func Identifier(name string) string {
	var b strings.Builder
	start := true
	for _, r := range name {
		switch letter := r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)); {
		case !letter:
			start = true
		case start:
			b.WriteRune(unicode.ToUpper(r))
			start = false
		default:
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return "Part"
	}
	return b.String()
}

// Names makes names unique. They differ in more than case, since code generators use
// them as file names.
type Names map[string]bool

// Take reserves and returns the name or, when it is taken, the name with the lowest
// free number appended.
func (n Names) Take(name string) string {
	free := name
	for i := 2; n[strings.ToLower(free)]; i++ {
		free = name + strconv.Itoa(i)
	}
	n[strings.ToLower(free)] = true
	return free
}

// TakeWith reserves the name of a store together with the names of its schemas, which are that name with one of the
// suffixes, and returns it.
func (n Names) TakeWith(name string, suffixes ...string) string {
	free := name
	for i := 2; n.anyTaken(free, suffixes); i++ {
		free = name + strconv.Itoa(i)
	}
	for _, suffix := range append([]string{""}, suffixes...) {
		n[strings.ToLower(free+suffix)] = true
	}
	return free
}

func (n Names) anyTaken(name string, suffixes []string) bool {
	return n[strings.ToLower(name)] ||
		slices.ContainsFunc(suffixes, func(suffix string) bool { return n[strings.ToLower(name+suffix)] })
}

// OwnComponents are the names of components that belong to no store, in the order of a document.
func OwnComponents() []string {
	problems := []string{"Invalid", "Unauthenticated", "Denied", "NotFound", "TooSlow", "Conflict", "Mismatch",
		"TooLarge", "Unsupported", "NoSuchRange", "Misdirected", "Limited", "Internal", "Unavailable"}
	for i := range problems {
		problems[i] += "Problem"
	}
	return slices.Concat([]string{FileRecord, UUIDOnly,
		"Provider", "Session", "APIKey", "Deletion", "Passkey", "PasskeyOptions", "PasskeyLoginOptions",
		"PasskeyDescriptor", "PasskeyRegistration", "PasskeyAssertion",
		"IssuedSession", "AccessToken", "ProtocolError",
		"Status", "ListPlan", "StreamLine", "StreamNotice", "StreamSecurityEvent", "Batch", "BatchResults", "Problem",
		"ProblemField"}, problems,
		[]string{"SessionCookie", "BearerToken", "Context", "AuthDetails"})
}

// ObjectName is the component that is Object.
func (s *Store) ObjectName() string { return s.ID }

// InputName is the component that is Input or Save.
func (s *Store) InputName() string { return s.ID + "Input" }

// UpdateName is the component that is Update or Change.
func (s *Store) UpdateName() string { return s.ID + "Update" }

// PatchName is the component that is Patch.
func (s *Store) PatchName() string { return s.ID + "Patch" }

// EventName is the component that is an event of the store in a stream.
func (s *Store) EventName() string { return s.ID + "Event" }

// PageName is the component that is Page.
func (s *Store) PageName() string { return s.ID + "Page" }

// PartialName is the component that is Partial.
func (s *Store) PartialName() string { return s.ID + "Partial" }

// suffixes are the suffixes of the names above. The name of a store's schema is the store's name with one of them.
func suffixes() []string {
	return []string{"Input", "Update", "Patch", "Event", "Page", "Partial", "Former"}
}

// FormerName is the component that is Former.
func (s *Store) FormerName() string { return s.ID + "Former" }
