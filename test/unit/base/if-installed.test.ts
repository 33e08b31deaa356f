import { expect, test } from 'vitest'
import { ifInstalled } from '../../../src/base/if-installed.js'

const failure = (message: string, rest: object): Promise<never> =>
  Promise.reject(Object.assign(new Error(message), rest))

test.each([
  ['an ES module', "Cannot find package 'pg' imported from /app/a.js", { code: 'ERR_MODULE_NOT_FOUND' }],
  ['CommonJS', "Cannot find module 'pg'\nRequire stack:\n- /app/a.cjs", { code: 'MODULE_NOT_FOUND' }],
  ['webpack', "Cannot find module 'pg'", { code: 'MODULE_NOT_FOUND' }],
  ['esbuild', 'Dynamic require of "pg" is not supported', {}],
  [
    "Yarn's Plug'n'Play",
    'signalbox tried to access pg (a peer dependency)',
    { pnpCode: 'MISSING_PEER_DEPENDENCY', data: { request: 'pg' } },
  ],
])('in %s, a package that is not installed is undefined', async (_, message, rest) => {
  expect(await ifInstalled('pg', failure(message, rest))).toBeUndefined()
})

test('an entry is missing if its package is', async () => {
  const message = "Cannot find package 'signalbox-zookeeper' imported from /app/a.js"
  const loading = failure(message, { code: 'ERR_MODULE_NOT_FOUND' })
  expect(await ifInstalled('signalbox-zookeeper/engine', loading)).toBeUndefined()
})

test.each([
  [
    'a package that it needs',
    "Cannot find package 'pg-types' imported from /app/a.js",
    'ERR_MODULE_NOT_FOUND',
  ],
  ['a package with a longer name', "Cannot find module 'pg-pool'", 'MODULE_NOT_FOUND'],
  ['a file of it', "Cannot find module '/app/node_modules/pg/index.js'", 'ERR_MODULE_NOT_FOUND'],
  ['an export of it', 'No "exports" main defined in /app/package.json', 'ERR_PACKAGE_PATH_NOT_EXPORTED'],
  ['a module of Node in a bundle', 'Dynamic require of "net" is not supported', undefined],
])('an installed package that lacks %s can not be loaded', async (_, message, code) => {
  await expect(ifInstalled('pg', failure(message, { code }))).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: `can't load the installed package pg: ${message}`,
  })
})
