import { writeFile } from 'node:fs/promises'
import { Option } from 'commander'
import { applicationCommand, exitStatusOf, integer } from '../command-line.js'
import { compare, isAble, secondsFor, type Outcome } from './comparison.js'
import { picture } from './picture.js'
import { scenarios, type Scenario } from './scenarios.js'
import { startService } from './service.js'
import type { Mode, Setting } from './setting.js'
import { strategies } from './strategies/registry.js'
import type { Strategy } from './strategies/strategy.js'
import { LEGEND, table } from './table.js'

/** Exit statuses. */
const EXIT = { fine: 0, failed: 1, usage: 2 } as const

interface Parsed extends Setting {
  readonly only?: string
  readonly scenario?: string
  readonly redis?: string
  readonly json?: string
  readonly picture?: string
}

/** Executes the command line of the comparison and returns its exit status. */
export async function limits(args: readonly string[]): Promise<number> {
  const modes: readonly Mode[] = ['tasks', 'threads', 'processes']
  const command = applicationCommand('limits')
    .description(
      'Many workers call a service with a limit of calls per second, and the service counts what arrives: ways to keep ' +
        'the limit, side by side.',
    )
    .option('--workers <number>', 'how many call', integer(1, 1000), 50)
    .option('--limit <number>', 'calls a second', integer(1, 10_000), 20)
    .option('--seconds <number>', 'how long each run is', integer(2, 3600), 10)
    .addOption(new Option('--mode <mode>', 'where the workers live').choices(modes).default('tasks'))
    .addOption(new Option('--only <name>', 'one strategy only').choices(strategies.map(({ name }) => name)))
    .addOption(
      new Option('--scenario <name>', 'one scenario only').choices(scenarios.map(({ name }) => name)),
    )
    .option('--redis <url>', 'a Redis server, for the strategies by which processes count there')
    .option('--json <file>', 'write the figures there')
    .option(
      '--picture <file>',
      'draw the calls of the first scenario over time there, in SVG; default: next to the figures, or limits.svg',
    )
  return exitStatusOf(async () => {
    await run(command.parse(args, { from: 'user' }).opts<Parsed>())
    return EXIT.fine
  }, EXIT)
}

async function run({
  only,
  scenario,
  redis,
  json,
  picture: file = pictureNextTo(json),
  ...setting
}: Parsed): Promise<void> {
  const chosen = strategies.filter(({ name }) => only === undefined || name === only)
  const able = chosen.filter(one => isAble(one, setting.mode, redis))
  if (able.length === 0 && !chosen.some(({ simulated }) => simulated))
    throw new Error(leftOut(chosen, setting.mode))
  const played: { readonly scenario: Scenario; readonly outcomes: readonly Outcome[] }[] = []
  const plays = scenarios.filter(({ name }) => scenario === undefined || name === scenario)
  const seconds = plays.reduce((sum, one) => sum + secondsFor(chosen, setting, one, redis), 0)
  process.stdout.write(`takes about ${seconds} s, longer on a busy machine\n${LEGEND}\n`)
  await using service = await startService()
  for (const one of plays) {
    const outcomes = await compare(chosen, setting, one, service, redis)
    process.stdout.write(`${table(one.title, setting, figuresOf(outcomes))}\n`)
    played.push({ scenario: one, outcomes })
  }
  if (able.length < chosen.length && setting.mode !== 'tasks') {
    const others = chosen.filter(one => !able.includes(one))
    process.stdout.write(`${leftOut(others, setting.mode)}\n`)
  }
  const first = played[0]!
  await writeFile(file, await picture(first.outcomes, setting))
  process.stdout.write(`drawn: ${file}\n`)
  if (json === undefined) return
  const report = {
    ...setting,
    scenario: first.scenario.name,
    strategies: figuresOf(first.outcomes),
    scenarios: played.map(({ scenario: { name, title }, outcomes }) => ({
      name,
      title,
      strategies: figuresOf(outcomes),
    })),
  }
  await writeFile(json, `${JSON.stringify(report, undefined, 2)}\n`)
}

function pictureNextTo(json: string | undefined): string {
  return json === undefined ? 'limits.svg' : json.replace(/(\.json)?$/, '.svg')
}

/** Explains why strategies did not run. */
function leftOut(others: readonly Strategy[], mode: Mode): string {
  const names = (some: readonly Strategy[]): string => some.map(({ name }) => name).join(', ')
  const unable = others.filter(({ modes }) => !modes.includes(mode))
  const unserved = others.filter(({ modes }) => modes.includes(mode))
  return [
    ...(unable.length > 0
      ? [`left out, because they do not count for several ${mode}: ${names(unable)}`]
      : []),
    ...(unserved.length > 0 ? [`left out without --redis: ${names(unserved)}`] : []),
  ].join('\n')
}

function figuresOf(outcomes: readonly Outcome[]): readonly Outcome['figures'][] {
  return outcomes.map(({ figures }) => figures)
}
