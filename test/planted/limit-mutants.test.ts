import { expect, test, vi } from 'vitest'
import { searchMachine } from '../support/limits/machine-search.js'
import type { Modules } from '../support/limits/machine-world.js'
import { limitMutants } from './limit-mutants.js'
import { mutatedCopy } from './mutated-copy.js'

/** Maximum number of events until a mutant must be found. */
const DEPTH = 4

const PLACES: Readonly<Record<keyof Modules, string>> = {
  errors: 'src/base/errors.js',
  limiterErrors: 'src/limits/limiter-errors.js',
  waiter: 'src/limits/callers.js',
  callers: 'src/limits/remote/box-callers.js',
  options: 'src/limits/remote/box-limiter-options.js',
  machine: 'src/limits/remote/reservation-machine.js',
}

test.each(limitMutants)('the mutant $id of limits is found: $description', async mutant => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
  const paths = Object.values(PLACES)
  const copy = mutatedCopy(
    mutant,
    paths.map(path => path.replace(/js$/, 'ts')),
  )
  try {
    const loaded = Object.entries(PLACES).map(async ([name, path]) => [name, await copy.load(path)])
    const modules = Object.fromEntries(await Promise.all(loaded)) as Modules
    const { broken } = [searchMachine(modules, 'error', DEPTH), searchMachine(modules, 'closed', DEPTH)].find(
      searched => searched.broken,
    ) ?? { broken: undefined }
    expect(broken, `${DEPTH} events went by`).toBeDefined()
    // A mutant that does not run breaks every promise.
    expect(broken!.message).not.toMatch(/is not defined|is not a function|SyntaxError/)
  } finally {
    copy.remove()
  }
})
