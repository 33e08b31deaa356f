/**
 * The part that is used here. The package itself is there only where the bench was run, and types are checked anywhere.
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
