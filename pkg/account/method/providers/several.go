package providers

import (
	"context"
	"net/url"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
)

// Browsers send several cookies of one name, which were set for other paths or hosts: the first one that is valid counts. The functions
// here return which of some secrets that is: the one of what the request is about. If none is, they return the first, whose use fails as
// that of one alone does; "" of none.

// FlowSecret returns the secret of the flow of a callback.
func (s *Method) FlowSecret(ctx context.Context, query url.Values, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		flow, err := s.DB.Tokens.Read(record.AsService(ctx, ""), flowUUID(flowKey(query)))
		if err != nil {
			return nil
		}
		browser := flow.Browser
		if flow.Use != nil {
			browser = flow.Use.Secret
		}
		return func(text string) bool { return secret.Matches(text, browser) }
	})
}
