package sse_test

import (
	"fmt"
	"testing"

	"belfry/pkg/api/sse"
	"belfry/pkg/store/policy"
)

// The cost of authorizing an event for one of many users, each with a session: 1,000
// users and 200 events a second are 200,000 authorizations a second.
func BenchmarkAuthorize(b *testing.B) {
	for name, rules := range map[string]policy.Rules{
		"owner":  {Owner: true},
		"rule":   {Get: `object.public == true || object.user == user.uuid`},
		"shared": {Get: `user != null`},
	} {
		b.Run(name, func(b *testing.B) {
			authorize := sse.Authorizer(b,
				rules, []byte(
					`{"uuid":"n","user":"user-7","public":false,"title":"The Adventures of Sherlock Holmes","year":1892}`))
			var viewers []*sse.Viewer
			for i := range 1000 {
				viewers = append(viewers, user(fmt.Sprintf("user-%d", i)))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				authorize(i%len(viewers) == 0, viewers[i%len(viewers)])
			}
		})
	}
}
