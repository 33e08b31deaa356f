import { open, InvalidArgumentError } from 'signalbox'
import { expect, test } from 'vitest'
import { serveConsole } from '../src/index.js'

test.each([
  ['host', ''],
  ['host', null],
  ['host', 5],
  ['port', '8080'],
  ['port', '/tmp/socket'],
  ['port', 70_000],
  ['port', -1],
  ['port', NaN],
  ['readOnly', 'yes'],
  ['hosts', '127.0.0.1'],
])('a console with the option %s = %j is rejected', async (option, value) => {
  await using box = await open('memory:')
  await expect(serveConsole(box, { [option]: value })).rejects.toThrow(InvalidArgumentError)
})

test('by default, a console listens on this machine only, and its data need the secret of its address', async () => {
  await using box = await open('memory:')
  const served = await serveConsole(box, { host: undefined, port: undefined })
  const { hostname, hash } = new URL(served.url)
  expect(hostname).toBe('127.0.0.1')
  const stores = new URL('stores', served.url)
  expect((await fetch(stores)).status).toBe(401)
  const headers = { Authorization: `Bearer ${hash.replace('#secret=', '')}`, 'Sec-Fetch-Site': 'same-origin' }
  expect((await fetch(stores, { headers })).status).toBe(200)
  await served.close()
  await served.close()
})

test('a port in use is an error, and leaves nothing behind', async () => {
  await using box = await open('memory:')
  const served = await serveConsole(box)
  const port = Number(new URL(served.url).port)
  await expect(serveConsole(box, { port })).rejects.toThrow(`can't serve on 127.0.0.1:${port}`)
  await served.close()
  await (await serveConsole(box, { port })).close()
})
