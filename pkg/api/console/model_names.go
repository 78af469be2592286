package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

// modelNames are the names that a rule of a store can have, for the completion of an editor.
type modelNames struct {
	Object    []string            `json:"object"`
	Input     []string            `json:"input"`
	User      []string            `json:"user"`
	Session   []string            `json:"session"`
	Linked    map[string][]string `json:"linked"` // by reference
	Functions []string            `json:"functions"`
	Variables []string            `json:"variables"`
}

// names replies with the names of fields that the configuration knows: those of no object, and no private ones.
func (v *modelView) names(r *request) error {
	s, _, err := v.store(r)
	if err != nil {
		return err
	}
	n := modelNames{Object: v.fieldNames(s.Name), Input: []string{}, User: []string{},
		Session: []string{"aal", "authenticatedAt"}, Linked: map[string][]string{},
		Functions: []string{"all", "contains", "duration", "endsWith", "exists", "exists_one", "filter", "has", "map",
			"matches", "size", "startsWith", "timestamp"},
		Variables: []string{"input", "linked", "now", "object", "session", "user"}}
	n.Input = n.Object
	if s.Owner != "" {
		n.Variables = append(n.Variables, "isOwner")
		slices.Sort(n.Variables)
	}
	for _, other := range v.Stores() {
		if other.Users {
			n.User = v.fieldNames(other.Name)
		}
	}
	for _, reference := range s.Links.References {
		n.Linked[reference.Field] = v.fieldNames(reference.Store)
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	r.SetHeader("Cache-Control", "no-store")
	r.Send(http.StatusOK, "application/json", text)
	return nil
}

// fieldNames returns the names of the fields that rules of other callers may read, sorted.
func (v *modelView) fieldNames(name string) []string {
	names := map[string]bool{"uuid": true, "created": true, "updated": true}
	st := v.Set.Store(name)
	for _, s := range v.Stores() {
		for _, f := range s.Fields {
			if s.Name == name && !st.Rules().Hidden(f.Name) {
				names[f.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
