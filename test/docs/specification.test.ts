import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { packageFile } from '../../bench/package.js'
import { guards } from '../support/specification/configurations.js'

const page = readFileSync(packageFile('docs/internals/specification.md'), 'utf8')
const constants = ['Lock', 'Commit'].flatMap(module => {
  const text = readFileSync(packageFile(`spec/${module}.cfg`), 'utf8')
  return [...text.matchAll(/^ +(\w+) = TRUE$/gm)].map(([, guard]) => guard)
})

test('the table of guards lists the configurations of TLC', () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \| .+ \| `(\w+)` \|$/gm)].map(([, guard, breaks]) => [
    guard,
    breaks,
  ])
  expect(rows).toEqual(guards.map(({ without, breaks }) => [without![0], breaks]))
})

test('each guard of the modules is taken out once', () => {
  expect(guards.map(({ without }) => without![0])).toEqual(constants)
})
