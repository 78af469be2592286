package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
)

// asked is a request for a profile.
type asked struct {
	id, scope, token string
	request          *http.Request
}

// shape is a provider's document about a user.
type shape func(asked) (status int, document any)

// number is the id of a provider that numbers its users.
func number(id string) any {
	if strings.Trim(id, "0123456789") == "" && id != "" {
		return json.Number(id)
	}
	return id
}

// github is GET /user with private profile information.
func github(a asked) (int, any) {
	if a.request.UserAgent() == "" {
		return http.StatusForbidden, map[string]any{"message": "Request forbidden by administrative rules. Please " +
			"make sure your request has a User-Agent header"}
	}
	const api, login = "https://api.github.com/users/octocat", "octocat"
	return http.StatusOK, map[string]any{
		"login": login, "id": number(a.id), "node_id": "MDQ6VXNlcjE=",
		"avatar_url": "https://github.com/images/error/octocat_happy.gif", "gravatar_id": "",
		"url": api, "html_url": "https://github.com/octocat", "followers_url": api + "/followers",
		"following_url": api + "/following{/other_user}",
		"gists_url":     api + "/gists{/gist_id}", "starred_url": api + "/starred{/owner}{/repo}",
		"subscriptions_url": api + "/subscriptions",
		"organizations_url": api + "/orgs", "repos_url": api + "/repos", "events_url": api + "/events{/privacy}",
		"received_events_url": api + "/received_events",
		"type":                "User", "site_admin": false, "name": "monalisa octocat", "company": "GitHub",
		"blog": "https://github.com/blog", "location": "San Francisco",
		"email": nil, "hireable": false, "bio": "There once was...", "twitter_username": "monatheoctocat",
		"public_repos": 2, "public_gists": 1,
		"followers": 20, "following": 0, "created_at": "2008-01-14T04:33:35Z", "updated_at": "2008-01-14T04:33:35Z",
		"private_gists":       81,
		"total_private_repos": 100, "owned_private_repos": 100, "disk_usage": 10000, "collaborators": 8,
		"two_factor_authentication": true,
		"plan": map[string]any{"name": "Medium", "space": 400, "private_repos": 20,
			"collaborators": 0},
	}
}

// githubEmails is GET /user/emails.
func githubEmails(a asked) (int, any) {
	if !strings.Contains(a.scope, "user:email") {
		return http.StatusNotFound, map[string]any{"message": "Not Found", "status": "404"}
	}
	return http.StatusOK, []any{map[string]any{"email": "octocat@github.com", "verified": true, "primary": true,
		"visibility": "private"}}
}

// google is its userinfo endpoint.
func google(a asked) (int, any) {
	return http.StatusOK, map[string]any{
		"sub": a.id, "name": "Ada Lovelace", "given_name": "Ada", "family_name": "Lovelace",
		"picture": "https://lh3.googleusercontent.com/a/ada", "email": "ada@example.com", "email_verified": true,
		"hd": "example.com",
	}
}

// facebook is GET /me with the requested fields. The application requires
// appsecret_proof.
func facebook(a asked) (int, any) {
	mac := hmac.New(sha256.New, []byte(secretOf("facebook")))
	mac.Write([]byte(a.token))
	if a.request.FormValue("appsecret_proof") != hex.EncodeToString(mac.Sum(nil)) {
		return http.StatusBadRequest, map[string]any{"error": map[string]any{"message": "Invalid appsecret_proof " +
			"provided in the API argument", "type": "GraphMethodException", "code": 100}}
	}
	all := map[string]any{
		"id": a.id, "name": "Ada Lovelace", "email": "ada@example.com",
		"picture": map[string]any{"data": map[string]any{"height": 50, "is_silhouette": false,
			"url": "https://platform-lookaside.fbsbx.com/platform/profilepic/", "width": 50}},
	}
	fields := a.request.FormValue("fields")
	if fields == "" {
		fields = "name"
	}
	document := map[string]any{"id": a.id}
	for field := range strings.SplitSeq(fields, ",") {
		document[field] = all[field]
	}
	return http.StatusOK, document
}

// amazon is GET /user/profile with the scope profile.
func amazon(a asked) (int, any) {
	return http.StatusOK, map[string]any{"user_id": a.id, "name": "Ada Lovelace", "email": "ada@example.com"}
}

// userInfo is that of OpenID Connect with the scopes email and profile.
func userInfo(a asked) (int, any) {
	return http.StatusOK, map[string]any{
		"sub": a.id, "name": "Ada Lovelace", "preferred_username": "ada", "email": "ada@example.com",
		"email_verified": true, "locale": "en",
	}
}

// twitter is GET account/verify_credentials.json.
func twitter(a asked) (int, any) {
	document := map[string]any{
		"id": number(a.id), "id_str": a.id, "name": "Ada Lovelace", "screen_name": "ada", "location": "London",
		"description": "", "url": nil,
		"protected": false, "followers_count": 1, "friends_count": 2, "listed_count": 0,
		"created_at":       "Wed Oct 21 23:53:04 +0000 2015",
		"favourites_count": 1, "utc_offset": nil, "time_zone": nil, "geo_enabled": true, "verified": false,
		"statuses_count": 83, "lang": nil,
		"contributors_enabled": false, "is_translator": false, "is_translation_enabled": false,
		"profile_background_color": "000000",
		"profile_image_url_https":  "https://abs.twimg.com/sticky/default_profile_images/default_profile_normal.png",
		"profile_link_color":       "000000",
		"default_profile":          true, "default_profile_image": true, "following": false,
		"follow_request_sent": false, "notifications": false,
		"translator_type": "none", "suspended": false, "needs_phone_verification": false,
	}
	if a.request.FormValue("include_email") == "true" {
		document["email"] = "ada@example.com"
	}
	if a.request.FormValue("skip_status") != "true" {
		document["status"] = map[string]any{"id_str": "1", "text": "just setting up"}
	}
	return http.StatusOK, document
}

// none is the profile of a provider without one.
func none(asked) (int, any) { return http.StatusNotFound, map[string]any{"error": "not_found"} }

// gitlab is its userinfo endpoint.
func gitlab(a asked) (int, any) {
	return http.StatusOK, map[string]any{
		"sub": a.id, "sub_legacy": "78fc6d4d4ca6e0f0f3cd1ee6a7b2c1f2b8f3d0f8", "name": "Ada Lovelace",
		"nickname": "ada", "preferred_username": "ada",
		"email": "ada@example.com", "email_verified": true, "profile": "https://gitlab.example.com/ada",
		"picture": "https://gitlab.example.com/uploads/-/system/user/avatar/1/avatar.png",
		"groups":  []string{"engines"},
	}
}

// discord is GET /users/@me with the scopes identify and email.
func discord(a asked) (int, any) {
	document := map[string]any{
		"id": a.id, "username": "ada", "discriminator": "0", "global_name": "Ada Lovelace",
		"avatar": "8342729096ea3675442027381ff50dfe",
		"banner": nil, "accent_color": 16711680, "locale": "en-US", "mfa_enabled": true, "flags": 64, "premium_type": 1,
		"public_flags": 64,
	}
	if strings.Contains(a.scope, "email") {
		document["email"], document["verified"] = "ada@example.com", true
	}
	return http.StatusOK, document
}

// linkedin is its userinfo endpoint.
func linkedin(a asked) (int, any) {
	return http.StatusOK, map[string]any{
		"sub": a.id, "name": "Ada Lovelace", "given_name": "Ada", "family_name": "Lovelace",
		"picture": "https://media.licdn-ei.com/dms/image/ada",
		"locale":  "en-US", "email": "ada@example.com", "email_verified": true,
	}
}
