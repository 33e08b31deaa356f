/**
 * Calls a function of lock files for each line of its input, such as `["lock", "FILE", {}]`, and prints its result or
 * the code of its error. `["release"]` calls the function that the last `lock` returned.
 */
import { createInterface } from 'node:readline'
import * as lockfile from 'signalbox-lockfile'

export type LockfileCall =
  | [name: Exclude<keyof typeof lockfile, 'default'>, file: string, options?: lockfile.LockOptions]
  | [name: 'release']

let release: (() => unknown) | undefined
const functions: Record<string, (...values: never[]) => unknown> = {
  ...lockfile,
  release: () => release!(),
}

process.on('warning', ({ message }) => console.log(JSON.stringify(message)))
for await (const line of createInterface(process.stdin)) {
  const [name, ...values] = JSON.parse(line) as [string, ...never[]]
  let result: unknown
  try {
    result = await functions[name]!(...values)
    if (typeof result === 'function') release = result as () => unknown
  } catch (error) {
    result = (error as NodeJS.ErrnoException).code
  }
  console.log(JSON.stringify(typeof result === 'function' ? 'held' : (result ?? 'done')))
}
