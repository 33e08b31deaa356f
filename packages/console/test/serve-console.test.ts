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
