/** Runs chaos.mjs with the options of the first argument; prints a line for each report, and then the result. */

import { Client } from "../dist/index.js";
import { run } from "./chaos.mjs";

const found = await run({ Client, ...JSON.parse(process.argv[2]), report: (count) => console.log(count) });
process.stdout.write(`${JSON.stringify(found)}\n`, () => process.exit());
