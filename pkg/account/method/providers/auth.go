package providers

import (
	"maps"
	"slices"

	"belfry/pkg/account/oauth"
)

// ProviderNames returns the names of the configured OAuth providers, sorted.
func (s *Method) ProviderNames() []string { return slices.Sorted(maps.Keys(s.Providers)) }

// PostsCallback reports whether a provider sends browsers to the callback by POST.
func (s *Method) PostsCallback() bool {
	for _, p := range s.Providers {
		if oauth.PostsCallback(p) {
			return true
		}
	}
	return false
}

// KeepsTokens reports whether the tokens of a provider are kept.
func (s *Method) KeepsTokens() bool {
	for _, p := range s.Providers {
		if k, ok := p.(oauth.Keeper); ok && k.KeepsTokens() {
			return true
		}
	}
	return false
}
