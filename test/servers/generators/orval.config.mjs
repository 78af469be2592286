// Without streams of lines, which orval would make of each request to create an object, ranges of types, and HTML forms.
export default {
  belfry: {
    input: 'openapi.json',
    output: {
      target: 'orval/api.ts', client: 'fetch', baseUrl: process.env.BELFRY,
      override: { contentType: { exclude: ['application/x-ndjson', '*/*', 'multipart/form-data', 'application/x-www-form-urlencoded'] } },
    },
  },
}
