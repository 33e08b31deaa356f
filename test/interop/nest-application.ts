import { fork, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { builtFolder } from '../../scripts/interop.mjs'
import { until } from '../../packages/conformance/src/time.js'
import type { Order, Report, Setting } from './nest.js'

/** Maximum wait, in milliseconds. */
const PATIENT = 60_000

/** A response of an application. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
}

/** A Nest application in a process of its own. */
export class NestApplication {
  readonly reports: Report[] = []
  stderr = ''
  readonly ended: Promise<NodeJS.Signals | number | null>
  readonly #child: ChildProcess
  #port = 0

  private constructor(setting: Setting) {
    const program = join(builtFolder, 'nestjs/nestjs/main.js')
    this.#child = fork(program, [JSON.stringify(setting)], { stdio: ['ignore', 2, 'pipe', 'ipc'] })
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.stderr += text))
    this.#child.on('message', (report: Report) => this.reports.push(report))
    this.ended = new Promise(resolve =>
      this.#child.once('close', (status, signal) => resolve(signal ?? status)),
    )
  }

  /** Starts an application, which ends with the test. */
  static async start(setting: Setting): Promise<NestApplication> {
    const application = new NestApplication(setting)
    onTestFinished(() => void application.#child.kill('SIGKILL'))
    await until('it listens', () => application.#listens() || application.#child.exitCode !== null, PATIENT)
    if (application.#port === 0) throw new Error(application.stderr)
    return application
  }

  /** @param content body of the request, which is sent as from a page of the application */
  async ask(path: string, method: 'GET' | 'POST' = 'GET', content?: object): Promise<Answer> {
    const page = { 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' }
    const response = await fetch(`http://127.0.0.1:${this.#port}/${path}`, {
      method,
      // Fastify would wait a minute for a kept connection before it shuts down.
      headers: { connection: 'close', ...(content && page) },
      ...(content && { body: JSON.stringify(content) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json')
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
  }

  /** Returns the response to a query of GraphQL. */
  async query(query: string): Promise<unknown> {
    return (await this.ask('graphql', 'POST', { query })).body
  }

  order(order: Order): void {
    this.#child.send(order)
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Waits until the application has sent this report. */
  async reported(wanted: Report): Promise<void> {
    const text = JSON.stringify(wanted)
    await until(text, () => this.reports.some(report => JSON.stringify(report) === text), PATIENT)
  }

  #listens(): boolean {
    const [first] = this.reports
    if (first && 'port' in first) this.#port = first.port
    return this.#port !== 0
  }
}
