import type { Command } from 'commander'
import { diagnose, type Diagnosis, type Finding, open } from '../index.js'
import { UnavailableError } from '../base/errors.js'
import { refused, trial } from './trial.js'
import { engineOption, placeOf, type EngineOptions } from './engine.js'
import { EXIT } from './exit-status.js'
import { EndedWith } from './failure.js'
import { printable, printableJson } from '../base/printable.js'
import { PROMISES } from '../base/promises.js'
import type { Terminal } from './terminal.js'

/** Findings after which no box is opened. Opening one would create the schema, or fail at a node of a cluster. */
const NOT_OPENED: readonly string[] = ['no-schema', 'cluster-node']

export function addDoctor(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('doctor')
    .description(
      'check whether the engine can be used and whether its settings weaken a promise, and show how to fix it',
    )
    .addOption(engineOption())
    .option('--json', 'print one JSON object')
    .action(async ({ engine, json }: EngineOptions) => {
      const url = await placeOf(engine, false)
      const diagnosis = await examine(url)
      stdout.write(json ? `${printableJson(plain(diagnosis))}\n` : report(diagnosis))
      if (diagnosis.findings.length > 0) throw new EndedWith(EXIT.failed)
    })
}

/** Examines an engine, and tries it out. @throws the engine's error if it can't be reached. */
export async function examine(url: string): Promise<Diagnosis> {
  const seen = await diagnose(url)
  if (seen.findings.some(({ id }) => NOT_OPENED.includes(id))) return seen
  const tried = await open(url, { label: 'signalbox doctor' }).then(
    async opened => {
      await using box = opened
      return await trial(box)
    },
    (error: unknown) => {
      // The engine answered just now, so this is a finding about it.
      if (!(error instanceof UnavailableError)) throw error
      return { facts: [], findings: [refused('entry', error)] }
    },
  )
  return { facts: [...seen.facts, ...tried.facts], findings: [...seen.findings, ...tried.findings] }
}

function report({ facts, findings }: Diagnosis): string {
  const lines = [
    ...facts.map(printable),
    ...findings.flatMap(finding => ['', `${finding.id}: ${printable(finding.how)}`, ...details(finding)]),
    '',
    findings.length === 0 ? 'No problems found.' : `${findings.length} found.`,
  ]
  return lines.map(line => `${line}\n`).join('')
}

function details({ promises, fix }: Finding): string[] {
  const weakened = promises.map(promise => `${promise}, ${PROMISES[promise]}`).join('; ')
  return [...(promises.length > 0 ? [`  weakens ${weakened}`] : []), `  fix: ${printable(fix)}`]
}

/** Adds the descriptions of the promises to the findings. */
function plain({ facts, findings }: Diagnosis): object {
  return {
    facts,
    findings: findings.map(finding => ({
      ...finding,
      promises: finding.promises.map(id => ({ id, words: PROMISES[id] })),
    })),
  }
}
