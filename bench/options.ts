import { Command, InvalidArgumentError } from 'commander'
import { parts } from './registry.js'

/** The options of the command line. */
export interface Options {
  /** The parts to measure; undefined for all. */
  readonly only: readonly string[] | undefined
  readonly rounds: number
  readonly seconds: number | undefined
  /** The file for a single report, instead of a report and a picture for each part. */
  readonly json: string | undefined
  /** The folder for the reports and pictures of the parts. */
  readonly reports: string
  /** A report to print as a table instead of measuring. */
  readonly table: string | undefined
  /** A report to draw instead of measuring. */
  readonly chart: string | undefined
  /** A folder of reports. Prints their tables for the page about benchmarks, as JSON, instead of measuring. */
  readonly summaries: string | undefined
}

interface Parsed {
  only?: readonly string[]
  rounds: number
  seconds?: number
  json?: string
  reports: string
  table?: string
  chart?: string
  summaries?: string
}

/**
 * Reads the command line, without `node` and the script.
 * @throws CommanderError if an argument is invalid, after explaining it on standard error, and after printing help.
 */
export function readOptions(args: readonly string[]): Options {
  const command = new Command('bench')
    .description(
      'Measures Signalbox side by side with others: in rounds, alternately, every work the same for all.',
    )
    .option(
      '--only <parts>',
      `only these parts, with commas between; "growth" means all about growth: ${parts.join(', ')}`,
      knownParts,
    )
    .option('--rounds <number>', 'rounds; every other one in the opposite order', wholeNumber, 5)
    .option(
      '--seconds <number>',
      'how long each subject works in a round (default: as the work says)',
      positive,
    )
    .option(
      '--reports <folder>',
      'write the report of each part there, as JSON and as a picture in SVG',
      'bench/reports',
    )
    .option('--json <file>', 'write one report of all parts there instead, and no picture')
    .option('--table <file>', 'measure nothing: print a report that was written before as markdown')
    .option('--chart <file>', 'measure nothing: draw a report that was written before as SVG')
    .option('--summaries <folder>', 'measure nothing: print tables about the reports there, as JSON')
    .allowExcessArguments(false)
    .exitOverride()
  const parsed = command.parse(args, { from: 'user' }).opts<Parsed>()
  const { only, seconds, json, table, chart, summaries, ...rest } = parsed
  return { only, seconds, json, table, chart, summaries, ...rest }
}

function knownParts(text: string): readonly string[] {
  return text.split(',').flatMap(name => {
    const named = parts.filter(part => part === name || part.startsWith(`${name}-`))
    if (named.length === 0) throw new InvalidArgumentError(`There is no part '${name}'.`)
    return named
  })
}

function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number from 1 to 9999.')
}

function positive(text: string): number {
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN
  if (number > 0 && number <= 3600) return number
  throw new InvalidArgumentError('It must be a number above 0 and at most 3600.')
}
