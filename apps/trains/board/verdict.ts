import { differenceText } from '../report/comparison.js'
import { EXIT } from '../report/exit.js'
import { exitStatus, type Report } from '../report/report.js'
import type { EndFrame } from './frames.js'

const numbers = new Intl.NumberFormat('en-US')

/** Returns the result of a run in words, for a viewer who sees one for the first time. */
export function verdictOf(report: Report): Pick<EndFrame, 'outcome' | 'headline' | 'lines'> {
  const { matchesSerial, interrupted, rejected, deadLettered, differences } = report
  const locations = Object.keys(report.locations).length
  if (!matchesSerial) {
    return {
      outcome: 'wrong',
      headline: 'Wrong: updates were lost or made twice.',
      lines: [
        'These locations differ from a run in one process, which applies one message after another:',
        ...differences.map(differenceText),
      ],
    }
  }
  return {
    outcome: exitStatus(report, true) === EXIT.fine.status ? 'right' : 'incomplete',
    headline: `Correct${interrupted ? ' so far' : ''}: no update was lost, and none was made twice.`,
    lines: [
      `${locations === 1 ? 'The location has' : `All ${numbers.format(locations)} locations have`} the same counts as ` +
        'in a run in one process, which applies one message after another.',
      ...killed(report),
      ...(interrupted ? ['The run was interrupted; --resume continues it.'] : []),
      ...(rejected > 0 ? [`${count(rejected, 'input line')} rejected.`] : []),
      ...(deadLettered > 0 ? [`${count(deadLettered, 'message')} dead-lettered.`] : []),
    ],
  }
}

function killed({ kills, redelivered, alreadyApplied }: Report): readonly string[] {
  if (kills.length === 0) return []
  return [
    `Workers killed: ${numbers.format(kills.length)}. Messages delivered again: ${numbers.format(redelivered)}, of ` +
      `which ${numbers.format(alreadyApplied)} were already committed and skipped.`,
  ]
}

function count(number: number, one: string): string {
  return `${numbers.format(number)} ${one}${number === 1 ? '' : 's'}`
}
