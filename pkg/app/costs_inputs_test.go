package app

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// hostile is a request that is made to be expensive.
type hostile struct {
	name    string
	query   string
	path    string // in place of x
	header  http.Header
	media   string
	body    string
	chunked bool // the body announces no length
}

func (h hostile) size() int {
	n := len(h.query) + len(h.path) + len(h.body) + len(h.media)
	for name, values := range h.header {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return n
}

// Sizes of what a request has at most.
const (
	headBytes = 62 << 10 // of net/http's 64 KiB
	bodyBytes = 4 << 20
	formBytes = 64 << 10
)

// filled returns as many texts as fit.
func filled(size int, one func(i int) string) string {
	var b strings.Builder
	for i := 0; ; i++ {
		text := one(i)
		if b.Len()+len(text) > size {
			return b.String()
		}
		b.WriteString(text)
	}
}

func repeat(text string, size int) string { return strings.Repeat(text, size/len(text)) }

func fields(size int) string {
	return `{` + filled(size-8, func(i int) string { return fmt.Sprintf(`"%x":0,`, i) }) + `"":0}`
}

var heads = sync.OnceValue(func() []hostile {
	head := func(name string, values ...string) http.Header { return http.Header{name: values} }
	return []hostile{
		{name: "nothing"},
		{name: "equal cookies", header: head("Cookie", repeat("belfry=x; ", headBytes))},
		{name: "cookies", header: head("Cookie", filled(headBytes, func(i int) string {
			return fmt.Sprintf("%x=; ",
				i)
		}))},
		{name: "commas forwarded", header: head("X-Forwarded-For", repeat(",", headBytes))},
		{name: "forwarding proxies", header: head("X-Forwarded-For", repeat("127.0.0.1,", headBytes)+"127.0.0.1")},
		{name: "parameters", query: filled(headBytes, func(i int) string { return fmt.Sprintf("%x&", i) })},
		{name: "few parameters, repeated", query: repeat("q&", headBytes)},
		{name: "a long q", query: "q=" + repeat("a+", headBytes)},
		{name: "a long filter", query: "filter=" + repeat("a==1||", headBytes)},
		{name: "a filter", query: "filter=" + repeat("(a==1||b==2)%26%26", 3900) + "true"},
		{name: "a filter of literals", query: "filter=title+in+[" + repeat("1,", 4000) + "1]"},
		{name: "nested filter", query: "filter=" + repeat("(", 2000) + "a==1" + repeat(")", 2000)},
		{name: "nots", query: "filter=" + repeat("!", 4000) + "a==1"},
		{name: "a long sort", query: "sort=" + repeat("a,", headBytes)},
		{name: "long fields", query: "fields=" + filled(headBytes, func(i int) string {
			return fmt.Sprintf("%x,",
				i)
		}) + "a"},
		{name: "long expand", query: "expand=" + repeat("author,", headBytes)},
		{name: "long cursor", query: "cursor=" + repeat("A", headBytes)},
		{name: "stores of a stream", query: "store=" + repeat("Books,", headBytes) + "Books"},
		{name: "events of a stream", query: "event=" + repeat("Store.Saved,", headBytes) + "Store.Saved"},
		{name: "last event", header: head("Last-Event-Id", repeat("A", headBytes))},
		{name: "a state", query: "code=x&state=" + repeat("A", headBytes)},
		{name: "an application",
			query: "response_type=code&code_challenge_method=S256&redirect_uri=https://app.example.org/in&code_challenge=" + repeat("A", 43) + "&state=" + repeat("%26", 6000) + "&x=" + repeat("%26", 40000)},
		{name: "tags", header: http.Header{"If-Match": {repeat(`"",`, headBytes/2) + `""`},
			"If-None-Match": {repeat(`"",`, headBytes/2) + `""`}}},
		{name: "preferences", header: head("Prefer", repeat("a,", headBytes))},
		{name: "accepted", header: http.Header{"Accept": {repeat("a/b;q=0.1,", headBytes/3)},
			"Accept-Encoding": {repeat("a;q=0.1,", headBytes/3)},
			"Accept-Language": {repeat("a;q=0.1,", headBytes/3)}}},
		{name: "ranges", header: head("Range", "bytes="+repeat("0-0,", headBytes))},
		{name: "a media type",
			media: "application/json" + filled(headBytes, func(i int) string { return fmt.Sprintf(`;a%x=""`, i) })},
		{name: "a continued media type",
			media: "application/json" + filled(headBytes, func(i int) string { return fmt.Sprintf(`;a*%d=""`, i) })},
		{name: "a disposition", header: head("Content-Disposition",
			"attachment"+filled(headBytes, func(i int) string { return fmt.Sprintf(`;a%x=""`, i) }))},
		{name: "a file name", header: head("X-Filename", repeat("%ff", headBytes))},
		{name: "digests",
			header: head("Content-Digest", filled(headBytes, func(i int) string {
				return fmt.Sprintf("a%d,",
					i)
			})+"a")},
		{name: "a token", header: head("Authorization", "Bearer "+repeat("A", headBytes))},
		{name: "a cookie", header: head("Cookie", "belfry="+repeat("A", headBytes))},
		{name: "cookie of everything", header: head("Cookie", filled(headBytes, func(i int) string {
			return []string{"belfry-device", "belfry-flow", "belfry-passkey", "belfry-pending", "belfry-console-notice",
				"belfry-code"}[i%6] + "=AAAA; "
		}))},
		{name: "lines", header: func() http.Header {
			h := http.Header{}
			for i := range 6000 {
				h.Add(fmt.Sprintf("X-%d", i), "")
			}
			return h
		}()},
		{name: "a path", path: repeat("a", headBytes)},
		{name: "a path of parts", path: repeat("a/", headBytes)},
		{name: "an escaped path", path: repeat("%61", headBytes)},
		{name: "an origin", header: http.Header{"Origin": {"https://app.example.com"},
			"Access-Control-Request-Method": {"PUT"}, "Access-Control-Request-Headers": {repeat(",", headBytes)}}},
		{name: "traces",
			header: http.Header{"Traceparent": {repeat("0", headBytes/2)},
				"Tracestate": {repeat("a=b,", headBytes/2)}}},
	}
})

func bodies(media string, size int) []hostile {
	deep := strings.Repeat(`{"a":`, 62)
	flat := fields(size - 1000)
	most := fields(min(size-1000, 420<<10)) // as many members as an object may have
	return []hostile{
		{name: "members", media: media, body: most},
		{name: "nested members", media: media, body: deep + most + strings.Repeat("}", 62)},
		{name: "objects of members", media: media, body: `{"a":[` + repeat(most+",", size-len(most)-16) + most + `]}`},
		{name: "a text deep within", media: media,
			body: deep + `"` + repeat("a", size-1000) + `"` + strings.Repeat("}", 62)},
		{name: "fields", media: media, body: flat},
		{name: "nested fields", media: media, body: `{"a":` + flat + `}`},
		{name: "deep fields", media: media, body: deep + flat + strings.Repeat("}", 62)},
		{name: "objects", media: media, body: `{"a":[` + repeat("{},", size-16) + `{}]}`},
		{name: "numbers", media: media, body: `{"a":[` + repeat("0,", size-16) + `0]}`},
		{name: "escapes", media: media, body: `{"a":"` + repeat(`\u0061`, size-16) + `"}`},
		{name: "a text", media: media, body: `{"title":"` + repeat("a ", size-16) + `"}`},
		{name: "words", media: media,
			body: `{"title":"` + filled(size-16, func(i int) string { return fmt.Sprintf("%x ", i) }) + `"}`},
		{name: "authors", media: media,
			body: `{"author":[` + filled(size-32, func(i int) string { return fmt.Sprintf(`"%x",`, i) }) + `""]}`},
		{name: "no end", media: media, body: `{"a":[` + repeat("[[0,0,0],0],", size-16)},
		{name: "wrong at the end", media: media, body: `{"a":[` + repeat("0,", size-16) + `]}`},
		{name: "spaces", media: media, body: repeat(" ", size-16) + "{}"},
		{name: "arrays", media: media, body: repeat("[],", size-16)},
		{name: "an array", media: media, body: "[" + repeat("[],", size-16) + "[]]"},
	}
}

func chunked(all []hostile) (out []hostile) {
	for _, in := range all {
		in.chunked, in.name = true, in.name+" in chunks"
		out = append(out, in)
	}
	return out
}

func forms(size int) []hostile {
	const media = "application/x-www-form-urlencoded"
	return []hostile{
		{name: "a form of fields", media: media,
			body: filled(size, func(i int) string { return fmt.Sprintf("%x&", i) })},
		{name: "a form of one field", media: media, body: repeat("a&", size)},
		{name: "a form of a value", media: media, body: "login=" + repeat("%61", size-8)},
		{name: "a form with an application", media: media,
			body: "authorize=" + filled(size-10, func(i int) string { return fmt.Sprintf("%x%%26", i) })},
		{name: "a form with a login",
			media: media, body: "password=a+fine+password&login=a@example.com&" +
				filled(size-50, func(i int) string { return fmt.Sprintf("%x&", i) })},
	}
}

var (
	objectBodies = sync.OnceValue(func() []hostile { return bodies("application/json", bodyBytes) })
	creations    = sync.OnceValue(func() []hostile {
		return append(append(bodies("application/json", bodyBytes), bodies("application/json", 250<<10)...),
			hostile{name: "lines", media: "application/x-ndjson", body: repeat("[\n", 2000)},
			hostile{name: "a line of fields", media: "application/x-ndjson", body: fields(1<<20) + "\n"},
			hostile{name: "a long line", media: "application/x-ndjson", body: repeat("a", 4<<20) + "\n"})
	})
	batchBodies = sync.OnceValue(func() []hostile {
		operation := func(rest string) string {
			return `{"operations":[{"method":"POST","path":"/books",` + rest +
				`}]}`
		}
		return append(bodies("application/json", bodyBytes),
			hostile{name: "operations", body: `{"operations":[` + repeat("{},", bodyBytes-32) + `{}]}`},
			hostile{name: "100 operations", body: `{"operations":[` + strings.Repeat("{},", 99) + `{}]}`},
			hostile{name: "an operation", body: `{"operations":[` + fields(bodyBytes-100) + `]}`},
			hostile{name: "headers",
				body: operation(`"headers":` + strings.ReplaceAll(fields(bodyBytes/2), ":0", `:"0"`))},
			hostile{name: "numeric headers", body: operation(`"headers":` + fields(bodyBytes/2))},
			hostile{name: "a path", body: operation(`"path2":"` + repeat("/", bodyBytes-100) + `"`)},
			hostile{name: "a body", body: operation(`"body":` + fields(bodyBytes-100))},
		)
	})
	fileBodies = sync.OnceValue(func() []hostile {
		const media = "multipart/form-data; boundary=b"
		part := func(i int) string {
			return fmt.Sprintf("--b\r\nContent-Disposition: form-data; name=%x\r\n\r\n\r\n", i)
		}
		return []hostile{
			{name: "a file", media: "text/plain", body: repeat("a", 60<<10)},
			{name: "parts", media: media, body: filled(1<<20, part)},
			{name: "a name of parts",
				media: media, body: "--b\r\nContent-Disposition: form-data; name=a; filename=" +
					filled(50<<10, func(i int) string { return fmt.Sprintf("a;a%d=", i) }) + "\r\n\r\n\r\n--b--\r\n"},
			{name: "headers of a part",
				media: media, body: "--b\r\n" + filled(60<<10, func(i int) string {
					return fmt.Sprintf("X-%x: a\r\n",
						i)
				}) + "\r\n\r\n--b--\r\n"},
			{name: "a field", media: media,
				body: "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n" + repeat("\"", 60<<10) + "\r\n--b--\r\n"},
			{name: "lines",
				media: media, body: "--b\r\nContent-Disposition: form-data; name=a; filename=a\r\n\r\n" +
					repeat("\r\n--", 60<<10) + "\r\n--b--\r\n"},
		}
	})
	loginForms = sync.OnceValue(func() []hostile {
		all := append(append(bodies("application/json", formBytes-2000), forms(formBytes-100)...), credentials()...)
		return append(append(all, chunked(bodies("application/json", bodyBytes))...), chunked(forms(bodyBytes))...)
	})
	consoleForms = sync.OnceValue(func() []hostile {
		all := append(forms(bodyBytes), chunked(forms(bodyBytes))...)
		const media = "multipart/form-data; boundary=b"
		part := func(i int) string {
			return fmt.Sprintf("--b\r\nContent-Disposition: form-data; name=%x\r\n\r\n\r\n", i)
		}
		return append(all, hostile{name: "parts", media: media, body: filled(1<<20, part)})
	})
)

func credentials() []hostile {
	var all []hostile
	for name, cbor := range map[string]string{
		"arrays": repeat("\x81",
			40000), "a map": "\xbf" +
			filled(40000, func(i int) string { return string([]byte{0x19, byte(i >> 8), byte(i), 0}) }) + "\xff",
		"promised":    "\x9b\x00\x00\x00\x00\x7f\xff\xff\xff",
		"an array of": "\x9a\x00\x00\x9c\x00" + repeat("\x00", 40000),
	} {
		b := base64.RawURLEncoding.EncodeToString([]byte(cbor))
		all = append(all, hostile{name: "cbor " + name,
			media: "application/json",
			body: fmt.Sprintf(
				`{"name":"a","credential":{"id":"AAAA","rawId":"AAAA","type":"public-key","response":{"attestationObject":%q,"clientDataJSON":"e30","authenticatorData":%q,"signature":"AA","userHandle":"AA"}}}`, b, "")})
	}
	return all
}
