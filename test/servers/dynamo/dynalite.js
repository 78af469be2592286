// Serves dynalite: dynalite.js HOST PORT.
//
// dynalite throws the error of a client that disconnects in the middle of a
// request, and ends; DynamoDB continues to serve, and so does this.
const [host, port] = process.argv.slice(2)

process.on('uncaughtException', (err) => {
  if (err.code !== 'ECONNRESET') {
    console.error(err)
    process.exit(1)
  }
})

require('dynalite')({ createTableMs: 20, updateTableMs: 20, deleteTableMs: 20 }).listen(Number(port), host)
