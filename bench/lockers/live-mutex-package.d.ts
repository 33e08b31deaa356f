/**
 * The parts that are used here. The package is installed only where the bench was run, but types are checked
 * everywhere.
 */
declare module 'live-mutex' {
  interface Options {
    readonly udsPath: string
  }

  export class Client {
    constructor(options: Options)
    ensure(): Promise<this>
    acquire(key: string): Promise<{ readonly id: string }>
    release(key: string, options: { readonly id: string }): Promise<unknown>
    setNoRecover(): void
    close(): void
  }

  export class Broker {
    constructor(options: Options)
    ensure(): Promise<this>
  }
}
