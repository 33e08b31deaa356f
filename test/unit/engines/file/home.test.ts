import { homedir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { databaseOf } from '../../../../src/engines/file/open.js'

test.each([
  ['file:~/locks', join(homedir(), 'locks')],
  ['file:~', homedir()],
  ['file:./~', join(process.cwd(), '~')],
  ['file:/~', '/~'],
])('%s is the folder %s', (url, folder) => {
  expect(databaseOf(url)).toBe(join(folder, 'signalbox.db'))
})

test('the home folder of another user is refused', () => {
  expect(() => databaseOf('file:~root/locks')).toThrow(/~.*file:.*another/)
})
