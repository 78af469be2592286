package serving_test

import (
	"testing"

	"belfry/config"
	"belfry/pkg/app/serving"
)

// Whatever decides which events of a store a client receives changes the text that identifies its rules, and nothing
// else does: another text resets the streams of some of its objects.
func TestEventRulesIdentifyWhatDecidesAboutEvents(t *testing.T) {
	t.Parallel()
	text := func(change func(*config.Store)) string {
		s := &config.Store{Expose: &config.Expose{List: true, EventsAsList: true}}
		change(s)
		return serving.EventRules(&config.Config{Stores: map[string]*config.Store{"Notes": s}})["Notes"]
	}
	same := text(func(*config.Store) {})
	for name, c := range map[string]struct {
		change  func(*config.Store)
		differs bool
	}{
		"get":     {func(s *config.Store) { s.Policy.Get = "user != null" }, true},
		"list":    {func(s *config.Store) { s.Policy.List = "user != null" }, true},
		"owner":   {func(s *config.Store) { s.Owner = "author" }, true},
		"fields":  {func(s *config.Store) { s.Fields = map[string]config.Field{"a": {Read: "isOwner"}} }, true},
		"private": {func(s *config.Store) { s.Private = []string{"a"} }, true},
		"uuids":   {func(s *config.Store) { s.ClientUUIDs = true }, true},
		"events":  {func(s *config.Store) { s.Expose.EventsAsList = false }, true},
		"indexes": {func(s *config.Store) { s.Indexes = [][]string{{"a"}} }, false},
		"schema":  {func(s *config.Store) { s.Schema = "x.json" }, false},
	} {
		if got := text(c.change); (got != same) != c.differs {
			t.Errorf("%s: %s", name, got)
		}
	}
}
