import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { builtProgram } from '../support/built-program.js'
import { runProgram } from '../support/run-program.js'
import { runtime } from './runtime.js'

const PROGRAMS = 500

test(`does in ${PROGRAMS} random programs what the lock manager of Node does`, async () => {
  const { program, argv } = runtime('Node 24', builtProgram('test/interop/web-locks.process.js'))
  const { stdout } = await runProgram(program, [...argv, '1', String(PROGRAMS)], {
    cwd: tmpdir(),
    timeLimit: 100_000,
  })
  // Expects that the programs cover everything that can happen to a request.
  for (const event of [
    'a called: N with a exclusive',
    'a called: N with a shared',
    'a called: N with null',
    'a N fulfilled',
    'a N rejected: AbortError',
    'a N rejected: Error: failure N',
    'a N rejected: reason N',
    '-c N rejected: NotSupportedError',
  ])
    expect(stdout.split('\n')).toContain(event)
})
