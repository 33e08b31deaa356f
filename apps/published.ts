#!/usr/bin/env node
/** The command `signalbox` of the package, without the applications that only a clone has. */
import { main } from '../src/cli/main.js'
import { mutex } from './applications.js'

await main([mutex])
