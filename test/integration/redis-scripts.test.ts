import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { HELD_LAYOUTS } from '../../src/engines/redis/held-layout.js'
import { ServerCode } from '../../src/engines/redis/lua/server-code.js'
import { limitCode, limitLookCode } from '../../src/engines/redis/lua/limit-code.js'

/** The globals that Redis defines for code. */
const globals = 'redis cjson cmsgpack struct bit KEYS ARGV'.split(' ')
/** Code for a name that is redefined in an inner block. */
const SHADOWING = '4'
/**
 * Codes for a variable that is unused or never set. A fragment that two scripts share has variables that only one
 * needs.
 */
const UNUSED = ['211', '221']

test.each([
  ['the lock table', HELD_LAYOUTS.string.code, []],
  ['the lock table on hashes of Redisson', HELD_LAYOUTS.redisson.code, UNUSED],
  ['limits', new ServerCode(limitCode()), []],
  ['the look at limits', new ServerCode(limitLookCode()), UNUSED],
])('luacheck finds no mistake in the code of %s', (_, { script }, ignored) => {
  const argv = ['-', '--std', 'lua51', '--no-color', '--no-max-line-length', '--read-globals', ...globals]
  const { stdout, error } = spawnSync('luacheck', [...argv, '--ignore', SHADOWING, ...ignored], {
    input: script,
    encoding: 'utf8',
  })
  expect(error).toBeUndefined()
  expect(stdout).toMatch(/Total: 0 warnings \/ 0 errors/)
})
