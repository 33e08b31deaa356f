/** The console of Signalbox: a page in the browser that shows who holds which lock, who waits for it, and why. */
export { consoleOf, type BoxConsole, type ConsoleOptions } from './console-of.js'
export { serveConsole, type ServeOptions, type ServedConsole } from './serve-console.js'
